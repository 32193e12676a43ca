"""The paths of the registry, as Confluent documents them."""

import json

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from tests.registry.registries import RegistryProcess, code_of, record

STRING = '{"type": "string"}'


def test_the_curl_lines_of_the_documentation(registry: RegistryProcess) -> None:
    assert registry.get("/").json() == {}
    assert registry.post("/subjects/Kafka-key/versions", {"schema": STRING}).json() == {"id": 1}
    assert registry.post("/subjects/Kafka-value/versions", {"schema": STRING}).json() == {"id": 1}
    assert registry.get("/subjects").json() == ["Kafka-key", "Kafka-value"]
    assert registry.get("/schemas/ids/1").json() == {"schema": '"string"'}
    assert registry.get("/schemas/ids/1/schema").body == b'"string"'
    assert registry.get("/schemas/ids/1/subjects").json() == ["Kafka-key", "Kafka-value"]
    assert registry.get("/schemas/ids/1/versions").json() == [
        {"subject": "Kafka-key", "version": 1},
        {"subject": "Kafka-value", "version": 1},
    ]
    assert registry.get("/subjects/Kafka-value/versions").json() == [1]
    first = {"subject": "Kafka-value", "version": 1, "id": 1, "schema": '"string"'}
    for version in ("1", "latest", "-1", "LATEST"):
        assert registry.get(f"/subjects/Kafka-value/versions/{version}").json() == first
    assert registry.get("/subjects/Kafka-value/versions/1/schema").body == b'"string"'
    assert registry.post("/subjects/Kafka-value", {"schema": STRING}).json() == first
    compatible = registry.post("/compatibility/subjects/Kafka-value/versions/latest", {"schema": STRING})
    assert compatible.json() == {"is_compatible": True}
    assert registry.get("/config").json() == {"compatibilityLevel": "BACKWARD"}
    assert registry.put("/config/Kafka-value", {"compatibility": "FULL"}).json() == {"compatibility": "FULL"}
    assert registry.get("/config/Kafka-value").json() == {"compatibilityLevel": "FULL"}
    assert registry.delete("/config/Kafka-value").json() == {"compatibilityLevel": "FULL"}
    assert registry.get("/mode").json() == {"mode": "READWRITE"}
    assert registry.delete("/subjects/Kafka-value/versions/1").body == b"1"
    assert registry.delete("/subjects/Kafka-key").json() == [1]
    assert registry.get("/contexts").json() == ["."]
    assert sorted(registry.get("/schemas/types").json()) == ["AVRO", "JSON", "PROTOBUF"]
    assert registry.get("/v1/metadata/version").json()["version"]
    clusters = registry.get("/v1/metadata/id").json()["scope"]["clusters"]
    assert clusters["kafka-cluster"]
    assert registry.get("/exporters").json() == {"error_code": 404, "message": "HTTP 404 Not Found"}


def test_a_schema_that_is_there_stays_what_it_is(registry: RegistryProcess) -> None:
    one = registry.register("same", record("Same", "a"))
    assert registry.register("same", record("Same", "a")) == one
    assert registry.register("same", f" {record('Same', 'a')} ") == one
    assert registry.register("same-elsewhere", record("Same", "a")) == one
    assert registry.get("/subjects/same/versions").json() == [1]
    two = registry.register("same", record("Same", "a", "b?"))
    assert two > one
    assert registry.get("/subjects/same/versions").json() == [1, 2]


def test_an_incompatible_schema_is_refused_with_the_reasons(registry: RegistryProcess) -> None:
    registry.register("evolving", record("E", "a"))
    refused = registry.post("/subjects/evolving/versions", {"schema": record("E", "a", "b")})
    assert code_of(refused) == (409, 409)
    assert 'subject "evolving"' in refused.json()["message"]
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused.json()["message"]
    path = "/compatibility/subjects/evolving/versions"
    assert registry.post(path, {"schema": record("E", "a", "b")}).json() == {"is_compatible": False}
    verbose = registry.post(f"{path}/latest?verbose=true", {"schema": record("E", "a", "b")}).json()
    assert verbose["is_compatible"] is False
    assert "{oldSchemaVersion: 1}" in verbose["messages"]
    assert registry.post(path, {"schema": record("E", "a", "b?")}).json() == {"is_compatible": True}
    assert registry.put("/config/evolving", {"compatibility": "none"}).json() == {"compatibility": "NONE"}
    registry.register("evolving", record("E", "a", "b"))
    assert registry.put("/config/evolving", {"compatibility": "BACKWARD_TRANSITIVE"}).status == 200
    assert (
        registry.post(f"{path}?verbose=true", {"schema": record("E", "c")}).json()["is_compatible"] is False
    )
    forced = registry.post("/subjects/evolving/versions?force=true", {"schema": record("E", "c")})
    assert forced.status == 200


def test_compatibility_of_what_is_not_there(registry: RegistryProcess) -> None:
    path = "/compatibility/subjects/nothing/versions"
    assert registry.post(path, {"schema": STRING}).json() == {"is_compatible": True}
    assert registry.post(f"{path}/latest", {"schema": STRING}).json() == {"is_compatible": True}
    assert code_of(registry.post(f"{path}/1", {"schema": STRING})) == (404, 40402)
    assert code_of(registry.post(f"{path}/earliest", {"schema": STRING})) == (422, 42202)
    assert code_of(registry.post(path, {"schema": '{"type": "nonsense"}'})) == (422, 42201)
    verbose = registry.post(f"{path}?verbose=true", {"schema": '{"type": "nonsense"}'}).json()
    assert verbose["is_compatible"] is False
    assert len(verbose["messages"]) == 1


def test_soft_and_hard_deletes(registry: RegistryProcess) -> None:
    one = registry.register("gone", record("Gone", "a"))
    two = registry.register("gone", record("Gone", "a", "b?"))
    assert code_of(registry.delete("/subjects/gone/versions/1?permanent=true")) == (404, 40407)
    assert code_of(registry.delete("/subjects/gone?permanent=true")) == (404, 40405)
    assert registry.delete("/subjects/gone/versions/1").body == b"1"
    assert code_of(registry.delete("/subjects/gone/versions/1")) == (404, 40406)
    assert code_of(registry.get("/subjects/gone/versions/1")) == (404, 40402)
    assert registry.get("/subjects/gone/versions/1?deleted=true").json()["id"] == one
    assert registry.get("/subjects/gone/versions").json() == [2]
    assert registry.get("/subjects/gone/versions?deleted=true").json() == [1, 2]
    assert registry.get("/subjects/gone/versions?deletedOnly=true").json() == [1]
    assert registry.get("/subjects/gone/versions?deletedAsNegative=true").json() == [-1, 2]
    assert registry.get(f"/schemas/ids/{one}").status == 200
    again = registry.register("gone", record("Gone", "a", "b?", "c?"))
    assert registry.put("/config/gone", {"compatibility": "NONE"}).status == 200
    assert registry.register("gone", record("Gone", "a")) == one
    assert registry.get("/subjects/gone/versions?deleted=true").json() == [2, 3, 4]
    assert registry.delete("/subjects/gone").json() == [2, 3, 4]
    assert code_of(registry.delete("/subjects/gone")) == (404, 40404)
    assert "gone" not in registry.get("/subjects").json()
    assert "gone" in registry.get("/subjects?deleted=true").json()
    assert "gone" in registry.get("/subjects?deletedOnly=true").json()
    assert code_of(registry.get("/subjects/gone/versions")) == (404, 40401)
    assert registry.get(f"/schemas/ids/{two}").status == 200
    assert registry.delete("/subjects/gone?permanent=true").json() == [2, 3, 4]
    assert code_of(registry.delete("/subjects/gone")) == (404, 40401)
    assert code_of(registry.get(f"/schemas/ids/{two}")) == (404, 40403)
    assert code_of(registry.get("/config/gone")) == (404, 40408)
    assert registry.register("gone", record("Gone", "z")) > again


def test_what_is_referred_to_stays(registry: RegistryProcess) -> None:
    registry.register("part", record("Part", "a"))
    whole = '{"type":"record","name":"Whole","fields":[{"name":"part","type":"Part"}]}'
    body = {"schema": whole, "references": [{"name": "Part", "subject": "part", "version": 1}]}
    reply = registry.post("/subjects/whole/versions", body)
    assert reply.status == 200, reply.body
    whole_id = reply.json()["id"]
    assert registry.get(f"/schemas/ids/{whole_id}").json()["references"] == body["references"]
    assert registry.get("/subjects/part/versions/1/referencedby").json() == [whole_id]
    for path in ("/subjects/part", "/subjects/part/versions/1"):
        refused = registry.delete(path)
        assert code_of(refused) == (422, 42206)
        assert "{magic=1,keytype=SCHEMA,subject=part,version=1}" in refused.json()["message"]
    missing = {**body, "references": [{"name": "Part", "subject": "part", "version": 9}]}
    assert code_of(registry.post("/subjects/whole/versions", missing)) == (422, 42201)
    registry.delete("/subjects/whole")
    assert registry.get("/subjects/part/versions/1/referencedby").json() == []
    assert registry.get("/subjects/part/versions/1/referencedby?deleted=true").json() == [whole_id]
    assert registry.delete("/subjects/part").json() == [1]
    assert code_of(registry.delete("/subjects/part?permanent=true")) == (422, 42206)


def test_configs_and_modes_have_scopes(registry: RegistryProcess) -> None:
    registry.register("scoped", STRING)
    assert code_of(registry.get("/config/scoped")) == (404, 40408)
    assert registry.get("/config/scoped?defaultToGlobal=true").json() == {"compatibilityLevel": "BACKWARD"}
    assert code_of(registry.put("/config/scoped", {"compatibility": "SOME"})) == (422, 42203)
    assert registry.put("/config/scoped", {"normalize": True, "unknown": 1}).json() == {"normalize": True}
    assert registry.get("/config/scoped").json() == {"normalize": True, "compatibilityLevel": "BACKWARD"}
    assert code_of(registry.get("/mode/scoped")) == (404, 40409)
    assert registry.get("/mode/scoped?defaultToGlobal=true").json() == {"mode": "READWRITE"}
    assert code_of(registry.put("/mode/scoped", {"mode": "READ"})) == (422, 42204)
    assert registry.put("/mode/scoped", {"mode": "readonly"}).json() == {"mode": "READONLY"}
    refused = registry.post("/subjects/scoped/versions", {"schema": record("R", "a")})
    assert code_of(refused) == (422, 42205)
    assert "is in read-only mode" in refused.json()["message"]
    assert registry.register("scoped", STRING) > 0
    assert code_of(registry.delete("/subjects/scoped")) == (422, 42205)
    assert registry.delete("/mode/scoped").json() == {"mode": "READONLY"}
    assert code_of(registry.delete("/mode/scoped")) == (404, 40401)


def test_schemas_are_imported_with_their_ids(registry: RegistryProcess) -> None:
    body = {"schema": record("Imported", "a"), "id": 77_000, "version": 5}
    assert code_of(registry.post("/subjects/imported/versions", body)) == (422, 42205)
    assert registry.put("/mode/imported", {"mode": "IMPORT"}).json() == {"mode": "IMPORT"}
    assert registry.post("/subjects/imported/versions", body).json() == {"id": 77_000}
    assert registry.get("/subjects/imported/versions").json() == [5]
    other = {"schema": record("Imported", "b"), "id": 77_000}
    refused = registry.post("/subjects/imported/versions", other)
    assert code_of(refused) == (422, 42205)
    assert "Overwrite new schema with id 77000" in refused.json()["message"]
    assert code_of(registry.post("/subjects/imported/versions", {"schema": STRING})) == (422, 42205)
    registry.put("/mode/imported", {"mode": "READWRITE"})
    assert code_of(registry.put("/mode/imported", {"mode": "IMPORT"})) == (422, 42205)
    assert registry.put("/mode/imported?force=true", {"mode": "IMPORT"}).status == 200
    registry.delete("/mode/imported")
    assert registry.register("after-import", record("After", "a")) == 77_001
    wrong = {"schema": record("Imported", "a", "b?"), "version": 9}
    assert code_of(registry.post("/subjects/imported/versions", wrong)) == (422, 42201)


def test_contexts_have_ids_of_their_own(registry: RegistryProcess) -> None:
    assert registry.post("/subjects/:.ctx:orders/versions", {"schema": record("C", "a")}).json() == {"id": 1}
    by_prefix = registry.post("/contexts/.ctx/subjects/payments/versions", {"schema": record("C", "b")})
    assert by_prefix.json() == {"id": 2}
    assert registry.get("/contexts").json() == [".", ".ctx"]
    assert registry.get("/contexts/.ctx/subjects").json() == [":.ctx:orders", ":.ctx:payments"]
    assert registry.get("/subjects?subjectPrefix=:.ctx:pay").json() == [":.ctx:payments"]
    assert ":.ctx:orders" in registry.get("/subjects").json()
    assert registry.get("/contexts/.ctx/schemas/ids/2").json()["schema"] == record("C", "b")
    assert registry.get("/schemas/ids/2?subject=:.ctx:").json()["schema"] == record("C", "b")
    assert registry.get("/subjects/payments/versions/1").json()["subject"] == ":.ctx:payments"
    assert registry.put("/contexts/.ctx/config", {"compatibility": "NONE"}).status == 200
    assert registry.get("/config/:.ctx:").json() == {"compatibilityLevel": "NONE"}
    assert registry.get("/config/:.ctx:orders?defaultToGlobal=true").json() == {"compatibilityLevel": "NONE"}
    assert registry.get("/config").json() == {"compatibilityLevel": "BACKWARD"}
    assert code_of(registry.delete("/contexts/.ctx")) == (422, 42211)
    for subject in ("orders", "payments"):
        registry.delete(f"/contexts/.ctx/subjects/{subject}")
        registry.delete(f"/contexts/.ctx/subjects/{subject}?permanent=true")
    assert registry.delete("/contexts/.ctx").status == 204
    assert registry.get("/contexts").json() == ["."]


def test_metadata_and_rules_are_kept_and_carried_on(registry: RegistryProcess) -> None:
    metadata = {"properties": {"owner": "ana"}}
    rules = {"domainRules": [{"name": "check", "kind": "CONDITION", "type": "CEL", "mode": "WRITE"}]}
    body = {"schema": record("M", "a"), "metadata": metadata, "ruleSet": rules, "propagateSchemaTags": False}
    registry.post("/subjects/rich/versions", body)
    found = registry.get("/subjects/rich/versions/1").json()
    assert (found["metadata"], found["ruleSet"]) == (metadata, rules)
    registry.register("rich", record("M", "a", "b?"))
    assert registry.get("/subjects/rich/versions/2").json()["metadata"] == metadata
    wanted = "/subjects/rich/metadata?key=owner&value=ana"
    assert registry.get(wanted).json()["version"] == 2
    assert code_of(registry.get("/subjects/rich/metadata?key=owner&value=bob")) == (404, 40403)
    assert registry.post("/subjects/rich", {"schema": record("M", "a", "b?")}).json()["version"] == 2
    assert [each["version"] for each in registry.get("/schemas?ruleType=CEL").json()] == [1, 2]
    broken = {**body, "ruleSet": {"domainRules": [{"kind": "CONDITION"}]}}
    assert code_of(registry.post("/subjects/rich/versions", broken)) == (422, 42210)


def test_newer_clients_get_more_fields(registry: RegistryProcess) -> None:
    headers = {"Confluent-Accept-Unknown-Properties": "true", "Content-Type": "application/json"}
    body = {"schema": record("Guid", "a")}
    made = registry.ask("POST", "/subjects/guid/versions", body, headers).json()
    assert (made["version"], len(made["guid"]), made.get("schema")) == (1, 36, None)
    assert registry.get(f"/schemas/guids/{made['guid']}").json()["schema"] == record("Guid", "a")
    assert registry.get(f"/schemas/guids/{made['guid']}/ids").json() == [{"context": ".", "id": made["id"]}]
    assert code_of(registry.get("/schemas/guids/none")) == (404, 40403)
    assert registry.get(f"/schemas/ids/{made['id']}?fetchMaxId=true").json()["maxId"] == made["id"]


def test_an_answer_has_the_schema_only_where_it_is_more_than_what_was_sent(registry: RegistryProcess) -> None:
    headers = {"Confluent-Accept-Unknown-Properties": "true", "Content-Type": "application/json"}
    body = {"schema": record("Guid", "b")}
    richer = {**body, "metadata": {"properties": {"a": "b"}}}
    assert "schema" not in registry.ask("POST", "/subjects/more/versions", richer, headers).json()
    only_metadata = {"metadata": {"properties": {"c": "d"}}}
    carried = registry.ask("POST", "/subjects/more/versions", only_metadata, headers).json()
    assert carried["schema"] == record("Guid", "b")
    path = "/subjects/more-of-protobuf/versions?format=serialized"
    text = {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3"; message M {}'}
    answer = registry.ask("POST", path, text, headers).json()
    assert (answer["schemaType"], "message" in answer["schema"]) == ("PROTOBUF", False)


def test_karapaces_clients_ask_for_the_subjects_too(registry: RegistryProcess) -> None:
    schema_id = registry.register("of-karapace-a", record("OfKarapace", "a"))
    registry.register("of-karapace-b", record("OfKarapace", "a"))
    found = registry.get(f"/schemas/ids/{schema_id}?includeSubjects=True").json()
    assert found == {
        "schema": record("OfKarapace", "a"),
        "subjects": ["of-karapace-a", "of-karapace-b"],
    }


def test_lists_have_portions(registry: RegistryProcess) -> None:
    for name in "abc":
        registry.register(f"portion-{name}", record("P", name))
    path = "/subjects?subjectPrefix=portion"
    assert registry.get(f"{path}&offset=1&limit=1").json() == ["portion-b"]
    assert len(registry.get(f"{path}&limit=-1").json()) == 3
    found = registry.get("/schemas?subjectPrefix=portion&latestOnly=true&limit=2").json()
    assert [each["subject"] for each in found] == ["portion-a", "portion-b"]


def test_an_alias_stands_for_a_subject(registry: RegistryProcess) -> None:
    registry.register("real", record("Real", "a"))
    registry.put("/config/nick", {"alias": "real"})
    assert registry.get("/subjects/nick/versions/latest").json()["subject"] == "real"


@pytest.mark.parametrize("prefix", ["/apis/ccompat/v6", "/apis/ccompat/v7"])
def test_addresses_of_apicurios_users_lead_here(registry: RegistryProcess, prefix: str) -> None:
    made = registry.post(f"{prefix}/subjects/of-apicurio%2Fv/versions", {"schema": record("Apicurio", "a")})
    assert made.status == 200, made.body
    schema_id = made.json()["id"]
    found = registry.get(f"{prefix}/subjects/of-apicurio%2Fv/versions/latest").json()
    assert (found["subject"], found["id"]) == ("of-apicurio/v", schema_id)
    assert registry.get(f"{prefix}/schemas/ids/{schema_id}").json() == {"schema": record("Apicurio", "a")}
    assert registry.get(prefix).json() == registry.get(f"{prefix}/").json() == {}
    assert registry.get(f"{prefix}8/subjects").status == 404
    assert registry.get("/apis/registry/v2/groups").status == 404
    with SchemaRegistryClient({"url": f"{registry.url}{prefix}"}) as client:
        assert "of-apicurio/v" in client.get_subjects()


def test_a_schema_by_its_id_is_told_with_its_version_where_that_is_asked_for(
    registry: RegistryProcess,
) -> None:
    schema_id = registry.register("told-a", record("Told", "a"))
    registry.register("told-b", record("Told", "x"))
    assert registry.put("/config/told-b", {"compatibility": "NONE"}).status == 200
    assert registry.register("told-b", record("Told", "a")) == schema_id
    headers = {"Confluent-Accept-Unknown-Properties": "true"}
    path = f"/schemas/ids/{schema_id}"
    bare = registry.ask("GET", path, headers=headers).json()
    assert bare.keys() == {"schema", "guid", "ts"}
    in_b = registry.ask("GET", f"{path}?subject=told-b", headers=headers).json()
    assert (in_b["subject"], in_b["version"], in_b["guid"]) == ("told-b", 2, bare["guid"])
    assert registry.get(f"{path}?subject=told-b").json() == {"schema": record("Told", "a")}
    registry.delete("/subjects/told-b/versions/2")
    in_b = registry.ask("GET", f"{path}?subject=told-b", headers=headers).json()
    assert (in_b["version"], in_b["deleted"]) == (2, True)


def test_references_are_told_with_their_context_where_that_is_asked_for(registry: RegistryProcess) -> None:
    registry.register(":.qual:part", record("Part", "a"))
    whole = '{"type":"record","name":"Whole","fields":[{"name":"part","type":"Part"}]}'
    bare = [{"name": "Part", "subject": "part", "version": 1}]
    schema_id = registry.register(":.qual:whole", whole, references=bare)
    qualified = [{"name": "Part", "subject": ":.qual:part", "version": 1}]
    for path in (f"/schemas/ids/{schema_id}?subject=:.qual:", "/subjects/:.qual:whole/versions/1?"):
        assert registry.get(path).json()["references"] == bare
        assert registry.get(f"{path}&referenceFormat=qualified").json()["references"] == qualified


def test_schemas_are_found_by_aliases_of_their_subjects(registry: RegistryProcess) -> None:
    registry.register("aliased", record("Aliased", "a"))
    registry.put("/config/other-name", {"alias": "aliased"})
    path = "/schemas?subjectPrefix=other-"
    assert registry.get(path).json() == []
    (found,) = registry.get(f"{path}&aliases=true").json()
    assert (found["subject"], found["aliases"]) == ("aliased", ["other-name"])


def test_an_import_may_give_a_schema_a_second_id(registry: RegistryProcess) -> None:
    """As Confluent's registry does it, which has a code for this (42207) and answers it nowhere."""
    body = {"schema": record("Twice", "a"), "id": 88_000, "version": 1}
    assert registry.put("/mode/twice", {"mode": "IMPORT"}).status == 200
    assert registry.post("/subjects/twice/versions", body).json() == {"id": 88_000}
    again = registry.post("/subjects/twice/versions", {**body, "id": 88_001, "version": 2})
    assert again.json() == {"id": 88_001}
    assert registry.ids("twice") == [88_000, 88_001]
    registry.delete("/mode/twice")


def test_what_this_registry_does_not_do_is_refused_in_words(registry: RegistryProcess) -> None:
    logical = registry.put("/config/refused", {"compatibilityPolicy": "LOGICAL"})
    assert code_of(logical) == (422, 42203)
    assert logical.json()["message"].endswith("Valid values are STRICT, LENIENT")
    validated = registry.put("/config/refused", {"validateFields": True})
    assert code_of(validated) == (422, 42205)
    assert "validateFields" in validated.json()["message"]
    assert registry.put("/config/refused", {"validateFields": False}).status == 200
    assert code_of(registry.put("/mode/refused", {})) == (422, 42204)
    assert code_of(registry.put("/mode/refused", [])) == (422, 42204)


def test_everything_is_there_after_a_restart(registry: RegistryProcess) -> None:
    def pages() -> list[object]:
        paths = ("/subjects?deleted=true", "/schemas?deleted=true", "/config", "/mode", "/contexts")
        return [json.loads(registry.get(path).body) for path in paths]

    before = pages()
    assert registry.close() == 0
    directory = registry.process.log_path.parent
    registry.__init__(  # type: ignore[misc]
        registry.bootstrap, directory, {"kafkastore.topic": registry.topic}, name="again"
    )
    assert pages() == before
