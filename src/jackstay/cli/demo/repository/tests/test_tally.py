"""What the README promises."""

import unittest

from tally import receipt, shares


class SharesTest(unittest.TestCase):
    """shares(total, people)"""

    def test_an_even_amount_is_split_evenly(self) -> None:
        self.assertEqual(shares(9_00, 3), [3_00, 3_00, 3_00])

    def test_no_cent_is_lost(self) -> None:
        for people in range(1, 12):
            self.assertEqual(sum(shares(10_00, people)), 10_00, f"split among {people}")

    def test_no_two_shares_differ_by_more_than_a_cent(self) -> None:
        owed = shares(10_00, 7)
        self.assertLessEqual(max(owed) - min(owed), 1)

    def test_somebody_has_to_pay(self) -> None:
        with self.assertRaises(ValueError):
            shares(10_00, 0)


class ReceiptTest(unittest.TestCase):
    """receipt(title, total, names)"""

    def test_the_total_is_what_was_paid(self) -> None:
        self.assertTrue(receipt("dinner", 10_00, ["Ann", "Ben", "Cleo"]).endswith("10.00"))
