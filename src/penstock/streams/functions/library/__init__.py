"""The functions themselves, by what they are about. Importing this folder declares the scalar ones."""

from penstock.streams.functions.library import (
    arrays,
    basics,
    encodings,
    jsons,
    numbers,
    regexes,
    strings,
    times,
    urls,
)

LOADED = (arrays, basics, encodings, jsons, numbers, regexes, strings, times, urls)
