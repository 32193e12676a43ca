"""What the cluster knows about itself: the tree it is written in, and the image the broker answers from.

The path through it: a store (`penstock.stores`) is a `tree.MetadataTree` whose nodes have Kafka's paths and
JSON (`znodes`); `load.load_image` reads it once into a `image.ClusterImage`; from then on every decision of
the controller is written to the tree as one `multi` and, once that succeeded, applied to the image as
`changes`.

Promised: the image kept by applying changes equals the image read again from the tree; the nodes are those
that Kafka 3.9 keeps in ZooKeeper. Not promised: anything about durability or sessions, which are the store's.
"""
