"""kafka-reassign-partitions: which brokers keep which partitions: propose, start, look, end."""

from __future__ import annotations

import random

from penstock.admin.configs import Change
from penstock.admin.moves import cluster, files
from penstock.admin.moves.model import Assignment, LogDirMove, LogDirs, Replica, Request
from penstock.admin.moves.throttles import (
    BROKER_THROTTLES,
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIRS_RATE,
    brokers_of,
    proposed_moves,
    topic_throttles,
)
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.options import Options
from penstock.cli.kafka.reassign_options import TABLE as TABLE
from penstock.cli.kafka.reassign_options import checked_action
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.property_files import read_text
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and "
    "create a new partition assignment in addition to the existing one. The --additional flag can also be used to "
    "change the throttle by resubmitting the current reassignment."
)
RUN_VERIFY = "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."


class Terse(Exception):
    """Printed as it is, without "Error:" before it."""


def execute(given: Options) -> int:
    action = checked_action(given)
    try:
        path = given.value("reassignment-json-file") or given.value("topics-to-move-json-file")
        text = read_text(path) if path else ""
        with ClusterClient(connection(given)) as client:
            ACT[action](client, given, text)
    except Terse as error:
        return _failed(str(error))
    except Refused as error:
        return _failed(f"Error: {error.exception_name}: {error}")
    except (UserError, Unreachable) as error:
        return _failed(f"Error: {error}")
    return 0


def _failed(line: str) -> int:
    print(line, flush=True)
    return 1


def _generate(client: ClusterClient, given: Options, text: str) -> None:
    from penstock.controller.placement import place_replicas
    from penstock.metadata.image import BrokerRegistration

    brokers = set(files.parse_brokers(given.value("broker-list") or ""))
    topics = files.parse_topics(text)
    current = cluster.replicas_of(client, topics)
    aware = not given.has("disable-rack-aware")
    chosen = {
        one.node_id: BrokerRegistration(one.node_id, {}, one.rack if aware else None)
        for one in client.metadata([]).brokers
        if one.node_id in brokers
    }
    without_rack = sum(broker.rack is None for broker in chosen.values())
    if aware and 0 < without_rack < len(chosen):
        raise UserError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    proposed: Assignment = {}
    for topic in topics:
        partitions = {one.partition: replicas for one, replicas in current.items() if one.topic == topic}
        factor = len(partitions[min(partitions)])
        if factor > len(chosen):
            raise UserError(f"Replication factor: {factor} larger than available brokers: {len(chosen)}.")
        placed = place_replicas(
            chosen,
            num_partitions=len(partitions),
            replication_factor=factor,
            start_index=random.randrange(len(chosen)),
        )
        proposed |= {TopicPartition(topic, number): list(one) for number, one in enumerate(placed)}
    print(f"Current partition replica assignment\n{files.as_json(current, _current_dirs(client, current))}\n")
    print(f"Proposed partition reassignment configuration\n{files.as_json(proposed)}")


def _current_dirs(client: ClusterClient, assignment: Assignment) -> LogDirs:
    replicas = [
        Replica(broker, one.topic, one.partition) for one, brokers in assignment.items() for broker in brokers
    ]
    moves = cluster.log_dir_moves(client, replicas)
    return {replica: move.current for replica, move in moves.items() if move.current is not None}


def _execute(client: ClusterClient, given: Options, text: str) -> None:
    request = files.parse_request(text)
    proposed = files.checked_assignment(request)
    throttle = given.integer("throttle")
    dirs_throttle = given.integer("replica-alter-log-dirs-throttle")
    timeout_ms = given.integer("timeout") or 0
    ongoing = cluster.ongoing(client)
    if ongoing and not given.has("additional"):
        raise Terse(EXISTING)
    known = {node.node_id for node in client.nodes()}
    for broker in dict.fromkeys(broker for replicas in proposed.values() for broker in replicas):
        if broker not in known:
            raise UserError(f"Unknown broker id {broker}")
    current = _current(client, proposed)
    print(
        f"Current partition replica assignment\n\n{files.as_json(current, _current_dirs(client, current))}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback",
        flush=True,
    )
    sets_throttle = throttle is not None and throttle >= 0
    sets_dirs_throttle = dirs_throttle is not None and dirs_throttle >= 0
    if sets_throttle or sets_dirs_throttle:
        print(RUN_VERIFY)
    if sets_throttle:
        moves = proposed_moves(ongoing, proposed, current)
        cluster.alter_topics(
            client, {topic: Change(added, []) for topic, added in topic_throttles(moves).items()}
        )
        rates = Change({LEADER_RATE: str(throttle), FOLLOWER_RATE: str(throttle)}, [])
        absent = cluster.alter_brokers(client, dict.fromkeys(brokers_of(moves), rates))
        print(f"The inter-broker throttle limit was set to {throttle} B/s")
        _tell_absent(absent, "it has no throttle limit")
    if sets_dirs_throttle:
        moving = {replica.broker for replica in request.log_dirs}
        rate = Change({LOG_DIRS_RATE: str(dirs_throttle)}, [])
        absent = cluster.alter_brokers(client, dict.fromkeys(moving, rate))
        print(f"The replica-alter-dir throttle limit was set to {dirs_throttle} B/s")
        _tell_absent(absent, "it has no throttle limit")
    errors = cluster.start(
        client, dict(proposed), may_change_factor=not given.has("disallow-replication-factor-change")
    )
    if errors:
        raise Terse("Error reassigning partition(s):\n" + _error_lines(errors))
    print(f"Successfully started partition reassignment{_s(proposed)} for {_listed(proposed)}", flush=True)
    if request.log_dirs:
        _move_log_dirs(client, request.log_dirs, timeout_ms)


def _current(client: ClusterClient, proposed: Assignment) -> Assignment:
    everything = cluster.replicas_of(client, {one.topic for one in proposed})
    missing = [partition for partition in proposed if partition not in everything]
    if missing:
        raise refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition: {', '.join(map(str, missing))}",
        )
    return {partition: everything[partition] for partition in proposed}


def _move_log_dirs(client: ClusterClient, wanted: LogDirs, timeout_ms: int) -> None:
    started, late = cluster.alter_log_dirs(client, wanted, timeout_s=timeout_ms / 1000)
    for replica, path in sorted(started.items()):
        partition = f"{replica.topic}-{replica.partition}"
        print(
            f"Successfully started moving log directory to {path} for replica {partition} with broker {replica.broker} "
        )
    if late:
        names = ",".join(map(str, sorted(late)))
        raise Terse(f"Timed out before log directory move{_s(late)} could be started for: {names}")


def _verify(client: ClusterClient, given: Options, text: str) -> None:
    request = files.parse_request(text)
    ongoing = cluster.ongoing(client)
    current = cluster.known_replicas(client, {one.topic for one, _ in request.partitions})
    lines = ["Status of partition reassignment:"]
    for partition, target in sorted(dict(request.partitions).items()):
        replicas = current.get(partition, [])
        if partition in ongoing:
            lines.append(f"Reassignment of partition {partition} is still in progress.")
        elif replicas == target:
            lines.append(f"Reassignment of partition {partition} is completed.")
        else:
            lines.append(
                f"There is no active reassignment of partition {partition}, but replica set is "
                f"{_numbers(replicas)} rather than {_numbers(target)}."
            )
    print("\n".join(lines))
    moves = cluster.log_dir_moves(client, request.log_dirs)
    states = []
    is_moving = False
    for replica, target_dir in sorted(request.log_dirs.items()):
        move = moves.get(replica)
        states.append(_move_state(replica, target_dir, move))
        is_moving |= move is not None and move.future is not None
    print("\n".join(states))
    if not ongoing and not is_moving and not given.has("preserve-throttles"):
        _clear_throttles(client, request)


def _move_state(replica: Replica, target: str, move: LogDirMove | None) -> str:
    where = f"Partition {replica.topic}-{replica.partition}"
    if move is None:
        return f"{where} cannot be found in any live log directory on broker {replica.broker}."
    if move.current is None:
        return (
            f"{where} is not found in any live log dir on broker {replica.broker}. "
            "There is likely an offline log directory on the broker."
        )
    if move.future is None:
        if move.current == target:
            return f"Reassignment of replica {replica} completed successfully."
        return (
            f"{where} on broker {replica.broker} is not being moved from log dir {move.current} to {target}."
        )
    if move.future == target:
        return f"Reassignment of replica {replica} is still in progress."
    return f"{where} on broker {replica.broker} is being moved to log dir {move.future} instead of {target}."


def _cancel(client: ClusterClient, given: Options, text: str) -> None:
    request = files.parse_request(text)
    ongoing = cluster.ongoing(client, {one for one, _ in request.partitions}) if request.partitions else {}
    if ongoing:
        errors = cluster.start(client, dict.fromkeys(ongoing))
        if errors:
            raise Terse(f"Error cancelling partition reassignment{_s(errors)} for:\n{_error_lines(errors)}")
        print(f"Successfully cancelled partition reassignment{_s(ongoing)} for: {_listed(ongoing)}")
    else:
        print("None of the specified partition reassignments are active.")
    back = {
        replica: move.current
        for replica, move in cluster.log_dir_moves(client, request.log_dirs).items()
        if replica in request.log_dirs and move.future is not None and move.current is not None
    }
    if back:
        _move_log_dirs(client, back, given.integer("timeout") or 0)
    else:
        # Apache Kafka leaves this line open; what reads it line by line is better served so.
        print("None of the specified partition moves are active.")
    if not given.has("preserve-throttles"):
        _clear_throttles(client, request)


def _clear_throttles(client: ClusterClient, request: Request) -> None:
    from penstock.admin.moves.throttles import TOPIC_THROTTLES
    from penstock.model.java_order import in_hash_map_order

    brokers = sorted(
        {node.node_id for node in client.nodes()}
        | {broker for _, replicas in request.partitions for broker in replicas}
    )
    print(f"Clearing broker-level throttles on broker{_s(brokers)} {_numbers(brokers)}", flush=True)
    absent = cluster.alter_brokers(client, dict.fromkeys(brokers, Change({}, BROKER_THROTTLES)))
    _tell_absent(absent, "its throttles stay; run this again when it is back")
    topics = in_hash_map_order(dict.fromkeys(one.topic for one, _ in request.partitions))
    print(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}", flush=True)
    cluster.alter_topics(client, dict.fromkeys(topics, Change({}, TOPIC_THROTTLES)))


def _tell_absent(brokers: list[int], consequence: str) -> None:
    for broker in brokers:
        print(f"Broker {broker} does not answer: {consequence}", flush=True)


def _list(client: ClusterClient, given: Options, text: str) -> None:
    ongoing = cluster.ongoing(client)
    if not ongoing:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for partition, one in ongoing.items():
        adding = f" adding: {_numbers(one.adding)}." if one.adding else ""
        removing = f" removing: {_numbers(one.removing)}." if one.removing else ""
        print(f"{partition}: replicas: {_numbers(one.replicas)}.{adding}{removing}")


ACT = {"generate": _generate, "execute": _execute, "verify": _verify, "cancel": _cancel, "list": _list}


def _s(things: object) -> str:
    return "" if len(things) == 1 else "s"  # type: ignore[arg-type]


def _numbers(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def _listed(partitions: object) -> str:
    return ",".join(map(str, sorted(partitions)))  # type: ignore[call-overload]


def _error_lines(errors: dict[TopicPartition, Refused]) -> str:
    return "\n".join(f"{partition}: {reason}" for partition, reason in sorted(errors.items()))
