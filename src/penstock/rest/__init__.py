"""The REST proxy: topics, records, groups and administration over HTTP, in Confluent's form (v2 and v3).

The path of a request, behind `penstock.web`:

    v2, v3 (one module for each resource) → access (as whom the cluster sees it) → admin.Cluster, in a bounded pool of threads
                                                                                → produce (one producer for each login)
                                                                                → consumers (v2's instances, a thread each)

`options` is the table of properties, `service` puts it all together, `errors` says what an error of the cluster is over HTTP.
What is written and read is in one of the forms of `values`.

Promised: a record that is answered with an offset is written as the producer's `acks` say; nothing that waits runs on the event
loop; instances, bytes and times are bounded. Not promised: that a consumer instance outlives its proxy.
"""
