"""Files that nobody should have to read: bombs, claims, pickles, rubbish."""

from __future__ import annotations

import gzip
import io
import itertools
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

RUBBISH = np.random.default_rng(0).bytes(20_000)


def zipped(**members: bytes) -> bytes:
    """An archive, packed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _packed(text: bytes, times: int) -> bytes:
    """The same text many times: packed once, as parts of a packed file may follow each other."""
    return gzip.compress(text * (1 << 20), 1) * (times >> 20)


def array(shape: tuple[int, ...], content: bytes = b"", kind: str = "<f8") -> bytes:
    """An NPY file whose head may claim more than there is."""
    stream = io.BytesIO()
    head = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(stream, head)
    return stream.getvalue() + content


def sheet(rows: bytes, before: bytes = b"") -> bytes:
    """A workbook by hand."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    book = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    types = f'<Override PartName="/xl/workbook.xml" ContentType="{book}"/>'
    to_book = f'<Relationship Id="r" Type="{office}/officeDocument" Target="xl/workbook.xml"/>'
    to_sheet = f'<Relationship Id="r" Type="{office}/worksheet" Target="worksheets/s.xml"/>'
    relations = '<Relationships xmlns="{}/relationships">{}</Relationships>'
    sheets = f'<sheets><sheet xmlns:r="{office}" name="a" sheetId="1" r:id="r"/></sheets>'
    whole = before + f'<worksheet xmlns="{main}"><sheetData>'.encode() + rows
    return zipped(**{
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">{types}</Types>'.encode(),
        "_rels/.rels": relations.format(package, to_book).encode(),
        "xl/workbook.xml": f'<workbook xmlns="{main}">{sheets}</workbook>'.encode(),
        "xl/_rels/workbook.xml.rels": relations.format(package, to_sheet).encode(),
        "xl/worksheets/s.xml": whole + b"</sheetData></worksheet>",
    })  # fmt: skip


def _workbook_of_zeros() -> bytes:
    row = b'<row><c t="str"><v>f</v></c>' + b"<c><v>1</v></c>" * 50 + b"</row>"
    return sheet(row * 300_000)


def _far_cells() -> bytes:
    return sheet(b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (k, k)
                          for k in range(1, 60_000)))  # fmt: skip


def _laughs() -> bytes:
    names = [b"a%d" % k for k in range(12)]
    lines = [b'<!ENTITY a0 "7654 7654 7654">']
    for before, name in itertools.pairwise(names):
        lines.append(b"<!ENTITY " + name + b' "' + (b"&" + before + b";") * 10 + b'">')
    head = b"<!DOCTYPE worksheet [" + b"".join(lines) + b"]>"
    return sheet(b'<row><c t="str"><v>&a11;</v></c></row>', head)


def _parquet() -> bytes:
    import pyarrow
    from pyarrow import parquet

    stream = io.BytesIO()
    word = pyarrow.array(["x" * 4096]).dictionary_encode()
    index = pyarrow.array(np.zeros(4_000_000, dtype=np.int32))
    column = pyarrow.DictionaryArray.from_arrays(index, word.dictionary)
    parquet.write_table(pyarrow.table({"sex": column, "a": column}), stream)
    return stream.getvalue()


class _Planted:
    def __reduce__(self) -> Any:
        return print, ("a pickle was run",)


def _pickled() -> bytes:
    return zipped(**{"X.npy": array((1,), pickle.dumps(_Planted()), "|O")})


#: A name, and what is in the file.
HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "rubbish as text": ("a.csv", lambda: RUBBISH),
    "rubbish, packed": ("a.csv.gz", lambda: b"\x1f\x8b\x08" + RUBBISH),
    "rubbish as an archive": ("a.npz", lambda: b"PK\x03\x04" + RUBBISH),
    "rubbish as a workbook": ("a.xlsx", lambda: RUBBISH),
    "rubbish as Parquet": ("a.parquet", lambda: b"PAR1" + RUBBISH + b"PAR1"),
    "packed text": ("a.csv.gz", lambda: gzip.compress(b"sex,0\n") + _packed(b"no,1\n", 1 << 27)),
    "a line without an end": ("a.csv.gz", lambda: _packed(b"1,", 1 << 29)),
    "a packed archive": ("a.npz", lambda: zipped(**{"X.npy": array((1 << 25, 4), bytes(1 << 30))})),
    "a claim": ("a.npz", lambda: zipped(**{"X.npy": array((10**12, 9))})),
    "words of no length": ("a.npz", lambda: zipped(**{"sex.npy": array((1 << 33,), b"", "<U0")})),
    "a pickle": ("a.npz", _pickled),
    "a packed workbook": ("a.xlsx", _workbook_of_zeros),
    "cells far away": ("a.xlsx", _far_cells),
    "entities of entities": ("a.xlsx", _laughs),
    "a deep nest": ("a.xlsx", lambda: sheet(b"<row>" * 200_000 + b"</row>" * 200_000)),
    "a long word, many times": ("a.parquet", _parquet),
    "many columns": ("a.csv", lambda: b",".join([b"1"] * 1_000_000) + b"\n1\n"),
    "many quotes": ("a.csv", lambda: b'"' * 3_000_000),
    "another kind": ("a.json", lambda: b"[" * 100_000),
    "no name": (".csv", lambda: b"7654"),
}
