"""From a request to its answer.

`dispatch` reads a frame's header, finds the handler and encodes its answer; `call` is what a handler knows of the request
beside the message; `forwarding` passes administration on to the controller; `answers` are those that are still being worked
on; `later` is the form of an answer that is often ready at once; `slices` serves other clients between the parts of a large
request.
"""
