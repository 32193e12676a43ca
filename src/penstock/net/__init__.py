"""Listeners and connections: bytes in, whole frames up; replies down, bytes out, in request order.

The one path: `listener` accepts a socket → `connection` cuts frames out of what arrives and hands each, still in the receive
buffer, to the receiver it was given → the receiver's reply is sent with one gathering write, and records straight from their
file; small replies of several connections leave together, at the end of the loop's turn (`outbox`; `output` is what waits on
one socket). It promises: frames in order, replies in request order, a bound on every buffer. It knows no API.
`tls` has the same connection with OpenSSL behind it; records then go through memory.

The other way round, `peers` asks other brokers: one connection per broker and purpose, answers in request order.
"""
