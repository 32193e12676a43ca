"""Names in certificates, written as Java writes them. The expected texts are what Java 17 said of the same certificates."""

import pytest
from cryptography.x509 import Name, NameAttribute, ObjectIdentifier, RelativeDistinguishedName
from cryptography.x509.oid import NameOID

from penstock.security.distinguished_names import name_as_java_writes_it


def part(kind: ObjectIdentifier, text: str) -> NameAttribute:
    return NameAttribute(kind, text)


COUNTRY, ORGANIZATION, UNIT = (
    NameOID.COUNTRY_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
)
COMMON, MAIL, DOMAIN, USER = (
    NameOID.COMMON_NAME,
    NameOID.EMAIL_ADDRESS,
    NameOID.DOMAIN_COMPONENT,
    NameOID.USER_ID,
)


@pytest.mark.parametrize(
    ("parts", "written"),
    [
        ([(COUNTRY, "DE"), (ORGANIZATION, "Acme"), (COMMON, "alice")], "CN=alice,O=Acme,C=DE"),
        (
            [(ORGANIZATION, "Acme"), (COMMON, "alice"), (MAIL, "ana@example.com")],
            "1.2.840.113549.1.9.1=#160f616e61406578616d706c652e636f6d,CN=alice,O=Acme",
        ),
        (
            [(DOMAIN, "com"), (DOMAIN, "acme"), (USER, "u1"), (COMMON, "a=b")],
            r"CN=a\=b,UID=u1,DC=acme,DC=com",
        ),
        (
            [(ORGANIZATION, 'Ac,me "x" <y>; a+b\\c #h'), (COMMON, " lead trail ")],
            r"CN=\ lead trail\ ,O=Ac\,me \"x\" \<y\>\; a\+b\\c \#h",
        ),
        ([(ORGANIZATION, "Bücher"), (COMMON, "#x")], r"CN=\#x,O=Bücher"),
        (
            [
                (NameOID.SERIAL_NUMBER, "12"),
                (NameOID.SURNAME, "S"),
                (NameOID.STREET_ADDRESS, "str"),
                (NameOID.LOCALITY_NAME, "l"),
                (NameOID.STATE_OR_PROVINCE_NAME, "st"),
                (UNIT, "ou"),
            ],
            "OU=ou,ST=st,L=l,STREET=str,2.5.4.4=#0c0153,2.5.4.5=#13023132",
        ),
        ([(COMMON, "   ")], r"CN=\ \ \ "),
        ([(COMMON, "a\0b")], r"CN=a\00b"),
        ([(ObjectIdentifier("1.3.6.1.4.1.99999.1"), "ü")], "1.3.6.1.4.1.99999.1=#0c02c3bc"),
        ([], ""),
    ],
)
def test_names_are_those_that_java_writes(parts: list[tuple[ObjectIdentifier, str]], written: str) -> None:
    assert name_as_java_writes_it(Name([part(*each) for each in parts]).public_bytes()) == written


def test_parts_of_one_place_stay_together() -> None:
    last = RelativeDistinguishedName([part(COMMON, "m"), part(USER, "1"), part(UNIT, "z")])
    name = Name([RelativeDistinguishedName([part(ORGANIZATION, "Acme")]), last])
    assert name_as_java_writes_it(name.public_bytes()) == "CN=m+OU=z+UID=1,O=Acme"


def test_a_value_cannot_look_like_another_part() -> None:
    """Of another authority perhaps, which does not look at what stands in an e-mail address."""
    name = Name([part(ORGANIZATION, "Acme"), part(MAIL, "x,CN=admin")])
    assert "CN=admin" not in name_as_java_writes_it(name.public_bytes())


@pytest.mark.parametrize("broken", [b"0", b"\x30\x05", b"\x30\x82", b"\x30\x02\x31\x05", b""])
def test_what_cannot_be_read_is_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        name_as_java_writes_it(broken)
