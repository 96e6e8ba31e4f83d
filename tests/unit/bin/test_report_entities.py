"""Intervals of what taggers find: whole documents are drawn again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from privasr_k2.bin.report_entities import IntervalConfig, intervals
from privasr_k2.text.agreement import ALL, count_by_document
from privasr_k2.text.entities import Entity, TaggedText

DRAWS = IntervalConfig(num_replicates=500, confidence=0.95, seed=1)


def of_document(document: str, *entities: tuple[int, int, str]) -> TaggedText:
    spans = tuple(Entity(*e) for e in entities)
    return TaggedText(f"{document}-1", tuple("abcdef"), spans, document=document)


def test_intervals_draw_whole_documents():
    """Ten documents in which all is found and ten in which nothing is: half, and far from sure."""
    gold = [of_document(f"d{n}", (0, 1, "PER"), (2, 3, "PER")) for n in range(20)]
    found = [
        of_document(f"d{n}", *((0, 1, "PER"), (2, 3, "PER"))[: 2 * (n < 10)]) for n in range(20)
    ]
    counts = count_by_document(gold, found, "gold")
    assert len(counts) == 20
    ends = intervals(counts, DRAWS)
    low, high = ends["PER"]["span_recall_percent"]
    assert 20 < low < 35 and 65 < high < 80
    assert ends["PER"]["span_recall_documents"] == 20
    assert ends["PER"]["span_precision_documents"] == 10
    assert ends["PER"]["span_precision_percent"] == [100.0, 100.0]
    assert ends[ALL]["residual_percent"] == pytest.approx([100 - high, 100 - low], abs=8)


def test_five_documents_have_no_interval_and_texts_of_one_are_one():
    gold = [of_document(f"d{n}", (0, 1, "PER")) for n in range(5)]
    ends = intervals(count_by_document(gold, gold, "gold"), DRAWS)
    assert ends["PER"]["span_f1_percent"] is None and ends["PER"]["span_f1_documents"] == 5
    same = [of_document("d", (0, 1, "PER")), replace(gold[0], document="", user="e")]
    assert set(count_by_document(same, same, "gold")) == {"d", "e"}
