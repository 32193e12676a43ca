"""What clients do while they are lied to, one module for each kind of client.

Each scenario prepares its topics by the truth, lets the liar begin, does its work again and again until that succeeds, and then
compares with what the broker has. So it ends in the truth, and what hangs or stays wrong is found.
"""
