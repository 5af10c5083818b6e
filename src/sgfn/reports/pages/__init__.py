"""Runs as one HTML file that needs nothing else: no network, no other files, any browser."""

from sgfn.reports.pages.document import report_html, write_page
from sgfn.reports.pages.entries import Entry

__all__ = ["Entry", "report_html", "write_page"]
