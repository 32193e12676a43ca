"""The paths of Kafka Connect's REST API, with its statuses and bodies."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from penstock.connect.plugins import CONNECTORS
from penstock.connect.running.herder import Herder
from penstock.connect.running.logs import LINES_MAX
from penstock.connect.running.refusals import Refusal, bad_request
from penstock.connect.server.asking import Asking
from penstock.connect.server.bodies import config_of, creation_of, parsed
from penstock.connect.state.configs import Target
from penstock.web.call import Answer, Call
from penstock.web.errors import not_found
from penstock.web.routes import Routes

COMPATIBLE_VERSION: Final = "4.3.1"
"""Tools look at it to know which paths there are."""
HEALTHY: Final = "Worker has completed startup and is ready to handle requests."
_NAME: Final = "/connectors/{connector}"
_PLUGIN: Final = "/connector-plugins/{plugin}"
LINES: Final = 100
OF_LOGS: Final = {
    "lines": f"how many at most ({LINES})",
    "after": "only those with a greater number",
    "task": "only of this task",
}
ONLY_FAILED: Final = {"includeTasks": "also its tasks", "onlyFailed": "only what has failed"}


def routes_of(asking: Asking) -> Routes:
    routes = Routes()
    for add in (_about, _collection, _configs, _states, _tasks, _offsets, _plugins, _loggers):
        add(routes, asking)
    return routes


def _about(routes: Routes, asking: Asking) -> None:
    @routes.get("/", "The version, and the cluster's id.")
    async def about(call: Call) -> object:
        import penstock

        return {
            "version": COMPATIBLE_VERSION,
            "commit": f"penstock-{penstock.__version__}",
            "kafka_cluster_id": asking.herder.cluster_id,
        }

    @routes.get("/health", "Whether the worker can do its work.", is_open=True)
    async def health(call: Call) -> Answer:
        problem = asking.worker.problem
        if problem is None:
            return Answer.json({"status": "healthy", "message": HEALTHY})
        return Answer.json({"status": "unhealthy", "message": problem}, status=500)


def _collection(routes: Routes, asking: Asking) -> None:
    @routes.get(
        "/connectors", "The names of all connectors.", query={"expand": "status, info: more than names"}
    )
    async def names(call: Call) -> object:
        expand = call.queries("expand")
        if not expand:
            return asking.now(Herder.names)
        return asking.now(lambda herder: _expanded(herder, expand))

    @routes.post("/connectors", "Makes a connector.", body="name, config, initial_state")
    async def create(call: Call) -> Answer:
        body = await call.body()

        def made(herder: Herder) -> Answer:
            name, config, target = creation_of(parsed(body))
            found = herder.create(name, config, target)
            return Answer.json(found, status=201, headers={"Location": f"/connectors/{quote(name, safe='')}"})

        return await asking.at_leader(call, made, body)

    @routes.get(_NAME, "A connector.")
    async def info(call: Call) -> object:
        return asking.now(lambda herder: herder.info(call["connector"]))

    @routes.delete(_NAME, "Deletes a connector; how far it was stays known.")
    async def delete(call: Call) -> Answer:
        def deleted(herder: Herder) -> Answer:
            herder.delete(call["connector"])
            return Answer(status=204)

        return await asking.at_leader(call, deleted)


def _configs(routes: Routes, asking: Asking) -> None:
    @routes.get(_NAME + "/config", "Its configuration.")
    async def config(call: Call) -> object:
        return dict(asking.now(lambda herder: herder.config(call["connector"])))

    @routes.put(
        _NAME + "/config", "Sets its configuration; makes it where it is not there.", body="the configuration"
    )
    async def put(call: Call) -> Answer:
        body = await call.body()
        name = call["connector"]

        def done(herder: Herder) -> Answer:
            is_new, found = herder.put(name, config_of(parsed(body)))
            where = {"Location": f"/connectors/{quote(name, safe='')}"} if is_new else None
            return Answer.json(found, status=201 if is_new else 200, headers=where)

        return await asking.at_leader(call, done, body)

    async def patch(call: Call) -> object:
        body = await call.body()

        def done(herder: Herder) -> Answer:
            return Answer.json(herder.patch(call["connector"], config_of(parsed(body))))

        return await asking.at_leader(call, done, body)

    routes.add(
        "PATCH", _NAME + "/config", patch, "Changes some of it; null takes a name away.", body="the changes"
    )


def _states(routes: Routes, asking: Asking) -> None:
    @routes.get(_NAME + "/status", "How it is, and its tasks.")
    async def status(call: Call) -> object:
        return asking.now(lambda herder: herder.status(call["connector"]))

    def target(path: str, to: Target, status: int, summary: str) -> None:
        async def change(call: Call) -> Answer:
            def done(herder: Herder) -> Answer:
                herder.set_target(call["connector"], to)
                return Answer(status=status)

            return await asking.at_leader(call, done)

        routes.add("PUT", f"{_NAME}/{path}", change, summary)

    target("pause", Target.PAUSED, 202, "Pauses it: its tasks stay, and do nothing.")
    target("resume", Target.STARTED, 202, "Lets it go on.")
    target("stop", Target.STOPPED, 204, "Stops it: its tasks go.")

    @routes.post(_NAME + "/restart", "Starts it again.", query=ONLY_FAILED)
    async def restart(call: Call) -> Answer:
        with_tasks, only_failed = call.flag("includeTasks"), call.flag("onlyFailed")

        def done(herder: Herder) -> Answer:
            found = herder.restart(call["connector"], with_tasks=with_tasks, only_failed=only_failed)
            return Answer(status=204) if found is None else Answer.json(found, status=202)

        return await asking.at_leader(call, done)

    @routes.get(_NAME + "/logs", "The last lines of its log, and of its tasks'. Ours.", query=OF_LOGS)
    async def logs(call: Call) -> Answer:
        count = min(call.number("lines", LINES), LINES_MAX)
        after = call.number("after", -1) if call.query("after") is not None else None
        task = call.number("task", 0) if call.query("task") is not None else None

        def done(herder: Herder) -> Answer:
            return Answer.json(herder.logs(call["connector"], count, after=after, task=task))

        return await asking.at_leader(call, done)

    @routes.get(_NAME + "/topics", "The topics that it has used.")
    async def topics(call: Call) -> object:
        return asking.now(lambda herder: herder.topics(call["connector"]))

    @routes.put(_NAME + "/topics/reset", "Forgets which topics it has used.")
    async def reset(call: Call) -> Answer:
        await asking.here(lambda herder: herder.reset_topics(call["connector"]))
        return Answer(status=202)


def _tasks(routes: Routes, asking: Asking) -> None:
    @routes.get(_NAME + "/tasks", "Its tasks, with their configurations.")
    async def tasks(call: Call) -> object:
        return asking.now(lambda herder: herder.tasks(call["connector"]))

    @routes.get(_NAME + "/tasks/{task}/status", "How a task is.")
    async def status(call: Call) -> object:
        task = call.path_number("task")
        return asking.now(lambda herder: herder.task_status(call["connector"], task))

    @routes.post(_NAME + "/tasks/{task}/restart", "Starts a task again.")
    async def restart(call: Call) -> Answer:
        task = call.path_number("task")

        def done(herder: Herder) -> Answer:
            herder.restart_task(call["connector"], task)
            return Answer(status=204)

        return await asking.at_leader(call, done)


def _offsets(routes: Routes, asking: Asking) -> None:
    path = _NAME + "/offsets"

    @routes.get(path, "How far it is.")
    async def told(call: Call) -> object:
        return await asking.here(lambda herder: herder.offsets(call["connector"]))

    async def alter(call: Call) -> object:
        body = await call.body()

        def done(herder: Herder) -> Answer:
            return Answer.json({"message": herder.alter_offsets(call["connector"], parsed(body))})

        return await asking.at_leader(call, done, body)

    routes.add("PATCH", path, alter, "Sets how far it is; null takes a place away.", body="offsets")

    @routes.delete(path, "Lets it begin anew.")
    async def reset(call: Call) -> object:
        def done(herder: Herder) -> Answer:
            return Answer.json({"message": herder.reset_offsets(call["connector"])})

        return await asking.at_leader(call, done)


def _plugins(routes: Routes, asking: Asking) -> None:
    @routes.get(
        "/connector-plugins", "The plugins.", query={"connectorsOnly": "false: converters and so on, too"}
    )
    async def plugins(call: Call) -> object:
        kinds = CONNECTORS if call.flag("connectorsOnly", True) else ()
        return [
            {"class": one.name, "type": one.kind, "version": one.version}
            for one in asking.herder.plugins.all(*kinds)
        ]

    @routes.get(_PLUGIN + "/config", "What it can be configured with.")
    async def definitions(call: Call) -> object:
        return await asking.here(lambda herder: herder.definitions(call["plugin"]))

    @routes.put(_PLUGIN + "/config/validate", "Checks a configuration.", body="the configuration")
    async def validate(call: Call) -> object:
        body = await call.body()
        return await asking.here(lambda herder: herder.validate(call["plugin"], config_of(parsed(body))))


def _loggers(routes: Routes, asking: Asking) -> None:
    @routes.get("/admin/loggers", "The levels of loggers.")
    async def loggers(call: Call) -> object:
        return asking.now(Herder.loggers)

    @routes.get("/admin/loggers/{logger}", "The level of a logger.")
    async def logger(call: Call) -> object:
        return asking.now(lambda herder: herder.logger(call["logger"]))

    @routes.put(
        "/admin/loggers/{logger}", "Sets it.", query={"scope": "cluster: at all workers"}, body="level"
    )
    async def set_level(call: Call) -> Answer:
        body = await call.body()
        level = _level(parsed(body))
        name = call["logger"]
        if (call.query("scope") or "worker").lower() != "cluster":
            return Answer.json(await asking.here(lambda herder: herder.set_logger(name, level)))

        def done(herder: Herder) -> Answer:
            herder.set_logger_everywhere(name, level)
            return Answer(status=204)

        return await asking.at_leader(call, done, body)


def _level(value: Any) -> str:
    level = value.get("level") if isinstance(value, dict) else None
    if level is None:
        raise bad_request("Desired 'level' parameter was not specified in request.")
    return str(level)


def _expanded(herder: Herder, expand: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in herder.names():
        one: dict[str, Any] = {}
        for what in dict.fromkeys(expand):
            ask = {"status": herder.status, "info": herder.info}.get(what)
            if ask is None:
                continue
            try:
                one[what] = ask(name)
            except Refusal:
                continue  # it is just being made, or deleted
        if one:
            found[name] = one
    return found


__all__ = ["routes_of", "not_found"]
