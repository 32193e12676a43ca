"""Records to the documents of Elasticsearch or OpenSearch, over the REST API that both have.

`put` makes a line or two of a bulk request from each record (`documents`), sends them (`client`), and sorts the answers: what is
there; what is to be sent again; what the server will not have. A document's id is its record's key, or topic+partition+offset, so
that what is sent again changes nothing. With keys the offset is the document's version: an old record never overwrites a new one.
"""
