"""The first screen."""

WORDS = {
    "overview.title": "Overview",
    "overview.cluster_id": "Cluster {id}",
    "overview.healthy": "Healthy: all replicas are in sync (brokers: {brokers}, partitions: {partitions})",
    "overview.problems": "Something needs attention ({count})",
    "overview.brokers": "Brokers",
    "overview.topics": "Topics",
    "overview.partitions": "Partitions",
    "overview.groups": "Groups",
    "overview.size": "Size on disk",
    "overview.records_in": "Records in / s",
    "overview.records_out": "Records read / s",
    "overview.bytes_in": "Bytes in / s",
    "overview.bytes_out": "Bytes out / s",
    "overview.requests": "Requests / s",
    "overview.lag": "Lag of all groups",
    "overview.lag_s": "Longest lag",
    "overview.in": "in",
    "overview.out": "read",
    "overview.chart_records": "Records per second",
    "overview.chart_bytes": "Bytes per second",
    "overview.chart_requests": "Requests per second",
    "overview.chart_lag": "Lag of all groups, in records",
    "overview.chart_lag_s": "Longest lag of a group, in time",
    "overview.id": "Id",
    "overview.address": "Address",
    "overview.rack": "Rack",
    "overview.state": "State",
    "overview.leaders": "Leads",
    "overview.disk": "Disk used",
    "overview.serves": "serves",
    "overview.controls": "serves, controller",
    "overview.silent": "does not answer",
    "overview.advice": "A closer look",
    "overview.examine": "Examine now",
    "overview.advised": "Examined at {at}",
    "overview.no_advice": (
        "Settings, balance, disks and clocks have not been examined yet. It takes some seconds and changes "
        "nothing."
    ),
    "overview.nothing_found": "Nothing wrong or unwise was found.",
    "overview.no_controller": "The cluster has no controller.",
    "overview.no_controller_todo": (
        "Leaders cannot change and topics cannot be made until one is elected. If it lasts longer than some "
        "seconds, look at the brokers' logs and at ZooKeeper."
    ),
    "overview.missing_brokers": "Brokers are away that should keep partitions: {named}",
    "overview.missing_brokers_todo": "Start them again. One that is gone for good is replaced on the Cluster page.",
    "overview.silent_brokers": "Brokers do not answer the console: {named}",
    "overview.silent_brokers_todo": (
        "They may be starting, stopping or hanging, or their advertised address cannot be reached from here."
    ),
    "overview.offline": "{count} partitions have no leader: {named}",
    "overview.offline_todo": "Nobody can write or read them. Start the brokers that have their replicas.",
    "overview.below_min_isr": "{count} partitions have fewer replicas in sync than min.insync.replicas: {named}",
    "overview.below_min_isr_todo": (
        "Producers with acks=all are refused there. Start the brokers that are away, or see why they are behind."
    ),
    "overview.under_replicated": "{count} partitions have replicas that are not in sync: {named}",
    "overview.under_replicated_todo": (
        "Nothing is lost, but fewer copies are left. It should end by itself once all brokers are back."
    ),
    "overview.lost": "The metadata of {count} partitions of {named} may be lost: only logs that nobody claims are left.",
    "overview.lost_todo": "Delete nothing. The logs can be made a topic again.",
    "overview.damaged": "{count} logs cannot be read at some offset: {named}",
    "overview.damaged_todo": "Run penstock log check on that broker; another replica may have what is missing.",
    "overview.failed_directories": "Log directories have failed: {named}",
    "overview.failed_directories_todo": "Mend or replace the disk, then start the broker again.",
    "overview.without_session": "Brokers have no session with ZooKeeper: {named}",
    "overview.without_session_todo": "They go on with what they knew. See whether they can reach ZooKeeper.",
    "overview.disagreeing": "Brokers disagree about who is in the cluster: {named}",
    "overview.disagreeing_todo": "It should pass within seconds. If it does not, restart the one that differs.",
    "overview.disk_full": "Disks are nearly full on brokers {named}",
    "overview.disk_full_todo": "Shorten retention, delete what is not needed, or add a disk or a broker.",
    "overview.not_preferred": (
        "{count} partitions are not led by their preferred replica, and leaders are unevenly spread: {named}"
    ),
    "overview.not_preferred_todo": "Elect the preferred leaders on the Cluster page. It costs speed, not safety.",
    "overview.groups_refused": "The offsets of {count} groups may not be read: {named}",
    "overview.groups_refused_todo": "The console's user needs the right to describe them.",
}
