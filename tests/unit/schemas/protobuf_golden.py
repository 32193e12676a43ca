"""Writes the golden files anew: python tests/unit/schemas/protobuf_golden.py. Look at the difference before you keep it."""

import base64
from pathlib import Path

from google.protobuf import descriptor_pb2

from penstock.schemas.model import PROTOBUF
from penstock.schemas.parsing import parse

HERE = Path(__file__).parent / "golden"
NAMES = ("orders", "old_style")
FORMS = ("canonical", "normalized", "ignore_extensions", "from_descriptor")


def text_of(name: str, form: str) -> str:
    schema = parse(PROTOBUF, (HERE / f"{name}.proto").read_text())
    if form == "normalized":
        return schema.normalized().text
    if form == "from_descriptor":
        return parse(PROTOBUF, schema.formatted("serialized")).text
    return schema.formatted(form)


def described(serialized: str) -> descriptor_pb2.FileDescriptorProto:
    return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(serialized))


if __name__ == "__main__":
    for name in NAMES:
        for form in FORMS:
            (HERE / f"{name}.{form}.txt").write_text(text_of(name, form))
