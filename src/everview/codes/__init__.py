"""Values to words and back, and the dictionary that knows the interned ones.

`ingest` takes rows as users have them to an Arrow table, `encode` takes tables to matrices of words, `decode`
takes them back, `to_rows` gives Python values again.
"""

from everview.codes.atoms import pack, pack_all, unpack
from everview.codes.dictionary import Dictionary, Entries, Mark
from everview.codes.encode import decode, decode_weighted, encode, encode_weighted, references
from everview.codes.ingest import ingest, ingest_weighted
from everview.codes.order import atom_key
from everview.codes.rows import to_rows
from everview.codes.small import decode_pairs, decode_rows, encode_pairs, encode_rows

__all__ = [
    "Dictionary",
    "Entries",
    "Mark",
    "atom_key",
    "decode",
    "decode_pairs",
    "decode_rows",
    "decode_weighted",
    "encode",
    "encode_pairs",
    "encode_rows",
    "encode_weighted",
    "ingest",
    "ingest_weighted",
    "pack",
    "pack_all",
    "references",
    "to_rows",
    "unpack",
]
