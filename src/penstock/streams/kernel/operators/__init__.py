"""The steps of a plan at work: each takes a row and hands on none, one or more.

A module for each family of nodes. `building.Building` calls their functions with the node and the function that takes the rows
on; `steps` says which function builds which node.
"""
