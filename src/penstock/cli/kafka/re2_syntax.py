"""Whether a regular expression is one in RE2's syntax, which group subscriptions by pattern are written in.

Only the syntax is read; nothing is matched. The complaints are RE2's own names of what is wrong.
"""

MAX_REPEATS = 1000
MAX_CODE_POINT = 0x10FFFF
HEX_DIGITS = "0123456789abcdefABCDEF"
WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
FLAGS = "imsU"

POSIX_NAMES = "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit"
UNICODE_NAMES = (
    "Any C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs "
    "Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid "
    "Canadian_Aboriginal Carian Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari "
    "Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo Hebrew "
    "Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada "
    "Katakana Kayah_Li Kharoshthi Khmer Lao Latin Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic "
    "Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian Old_South_Arabian "
    "Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra Shavian Sinhala Sundanese "
    "Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh "
    "Ugaritic Unknown Vai Yi"
)
POSIX_CLASSES = frozenset(POSIX_NAMES.split())
UNICODE_CLASSES = frozenset(UNICODE_NAMES.split())

BAD_RANGE = "invalid character class range"
BAD_ESCAPE = "invalid escape sequence"
BAD_PERL = "invalid or unsupported Perl syntax"
BAD_NAME = "invalid named capture"


class _Wrong(Exception):
    pass


def complaint(pattern: str) -> str | None:
    """What is wrong with it; None when nothing is."""
    try:
        _Reader(pattern).read()
    except _Wrong as wrong:
        return str(wrong)
    return None


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.names: set[str] = set()
        # For each open group, and the whole: is there something that can be repeated?
        self.operands = [False]

    def next(self) -> str:
        """One character, or nothing at the end."""
        character = self.text[self.at : self.at + 1]
        self.at += 1
        return character

    def looks_at(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.at)

    def read(self) -> None:
        was_repetition = False
        while self.at < len(self.text):
            start = self.at
            character = self.next()
            is_repetition = character in "*+?" or (character == "{" and self.counts())
            if is_repetition:
                if self.looks_at("?"):
                    self.at += 1
                if was_repetition:
                    raise _Wrong("invalid nested repetition operator")
                if not self.operands[-1]:
                    raise _Wrong("missing argument to repetition operator")
            elif character == "(":
                self.open()
            elif character == ")":
                if len(self.operands) == 1:
                    raise _Wrong("regexp/syntax: internal error")
                self.operands.pop()
                self.operands[-1] = True
            elif character == "|":
                self.operands[-1] = False
            else:
                self.atom(character, start)
                self.operands[-1] = True
            was_repetition = is_repetition
        if len(self.operands) > 1:
            raise _Wrong("missing closing )")

    def counts(self) -> bool:
        """Behind a brace: {2}, {2,} and {2,3} are counts; anything else is the brace itself."""
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : max(end, self.at)].partition(",")
        if end < 0 or not _is_number(low) or (high and not _is_number(high)):
            return False
        most = int(high) if high else (int(low) if not comma else MAX_REPEATS)
        if int(low) > most or most > MAX_REPEATS:
            raise _Wrong("invalid repeat count")
        self.at = end + 1
        return True

    def open(self) -> None:
        if not self.looks_at("?"):
            self.operands.append(False)
            return
        if self.looks_at("?P<") or self.looks_at("?<"):
            start = self.text.index("<", self.at) + 1
            end = self.text.find(">", start)
            name = self.text[start:end]
            if end < 0 or not name or any(character not in WORD for character in name):
                raise _Wrong(BAD_NAME)
            if name in self.names:
                raise _Wrong("duplicate capture group name")
            self.names.add(name)
            self.at = end + 1
            self.operands.append(False)
            return
        self.at += 1
        self.flags()

    def flags(self) -> None:
        is_negative = saw_flag = False
        while True:
            character = self.next()
            if character and character in FLAGS:
                saw_flag = True
            elif character == "-" and not is_negative:
                is_negative, saw_flag = True, False
            elif character in (":", ")") and (saw_flag or not is_negative):
                if character == ":":
                    self.operands.append(False)
                return
            else:
                raise _Wrong(BAD_PERL)

    def atom(self, character: str, start: int) -> None:
        if character == "[":
            self.character_class()
        elif character == "\\":
            if self.looks_at("Q"):
                end = self.text.find("\\E", self.at)
                self.at = len(self.text) if end < 0 else end + 2
            elif self.text[self.at : self.at + 1] in (*"ABbz",):
                self.at += 1
            else:
                self.escape(allows_classes=True)

    def escape(self, *, allows_classes: bool) -> int:
        """What stands behind a backslash. Returns the code point, -1 for a class of them."""
        character = self.next()
        if not character:
            raise _Wrong("trailing backslash at end of expression")
        if character in "pP" and allows_classes:
            self.unicode_class()
            return -1
        if character in "dswDSW" and allows_classes:
            return -1
        if character == "x":
            return self.hexadecimal()
        if character in "01234567":
            if character != "0" and self.text[self.at : self.at + 1] not in (*"01234567",):
                raise _Wrong(BAD_ESCAPE)  # a reference to a group, which RE2 has not
            digits = character
            while len(digits) < 3 and self.text[self.at : self.at + 1] in (*"01234567",):
                digits += self.next()
            return int(digits, 8)
        if character in "afnrtv" or not (character.isascii() and character.isalnum()):
            return ord(
                {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}.get(character, character)
            )
        raise _Wrong(BAD_ESCAPE)

    def hexadecimal(self) -> int:
        if self.looks_at("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at + 1 : max(end, self.at)]
            self.at = end + 1
        else:
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            digits = digits if len(digits) == 2 else ""
        if not digits or any(digit not in HEX_DIGITS for digit in digits) or int(digits, 16) > MAX_CODE_POINT:
            raise _Wrong(BAD_ESCAPE)
        return int(digits, 16)

    def unicode_class(self) -> None:
        name = self.next()
        if name == "{":
            end = self.text.find("}", self.at)
            name = self.text[self.at : max(end, self.at)]
            self.at = end + 1
        if name.removeprefix("^") not in UNICODE_CLASSES:
            raise _Wrong(BAD_RANGE)

    def character_class(self) -> None:
        if self.looks_at("^"):
            self.at += 1
        is_first = True
        while is_first or not self.looks_at("]"):
            is_first = False
            if self.at >= len(self.text):
                raise _Wrong("missing closing ]")
            if self.looks_at("[:") and ":]" in self.text[self.at + 2 :]:
                end = self.text.index(":]", self.at + 2)
                if self.text[self.at + 2 : end].removeprefix("^") not in POSIX_CLASSES:
                    raise _Wrong(BAD_RANGE)
                self.at = end + 2
                continue
            low = self.class_member(allows_classes=True)
            if low >= 0 and self.looks_at("-") and not self.looks_at("-]"):
                self.at += 1
                if self.class_member(allows_classes=False) < low:
                    raise _Wrong(BAD_RANGE)
        self.at += 1

    def class_member(self, *, allows_classes: bool) -> int:
        character = self.next()
        if not character:
            raise _Wrong("missing closing ]")
        return self.escape(allows_classes=allows_classes) if character == "\\" else ord(character)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
