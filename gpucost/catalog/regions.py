"""Regions as people mean them: a continent, a country or a place, as the regions that offers name."""

from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]


class Regions:
    """Groups of regions, kept as data, over the regions whose countries are on record."""

    def __init__(self, groups: Iterable[Row], regions: Iterable[Row]) -> None:
        self._in_country: dict[str, set[str]] = {}
        for row in regions:
            if row["country"]:
                self._in_country.setdefault(str(row["country"]).lower(), set()).add(str(row["region"]))
        self._groups: dict[str, set[str]] = {}
        for row in groups:
            member = str(row["member"])
            found = self._in_country.get(member.lower(), set()) if row["kind"] == "country" else {member}
            self._groups.setdefault(str(row["name"]), set()).update(found)

    @property
    def names(self) -> list[str]:
        """Return what groups are called: continents, countries with their codes, places."""
        return sorted({*self._groups, *self._in_country})

    def members(self, name: str) -> set[str] | None:
        """Return the regions that a name means, whatever its case; None where it names no group.

        >>> known = [{"country": "DE", "region": "eu-central-1"}, {"country": "US", "region": "us-east-1"}]
        >>> groups = [{"name": "europe", "kind": "country", "member": "DE"}]
        >>> Regions(groups, known).members("Europe"), Regions(groups, known).members("de")
        ({'eu-central-1'}, {'eu-central-1'})
        """
        word = " ".join(name.strip().lower().replace("_", " ").split())
        return self._groups.get(word, self._in_country.get(word))

    def grouped(self, names: Iterable[str]) -> bool:
        """Tell whether any of some names means a group."""
        return any(self.members(name) is not None for name in names)

    def around(self, name: str, sold: Iterable[str]) -> tuple[str, int] | None:
        """Return the narrowest wider group in which something is sold, and how much of `sold` lies in it."""
        inner, places = self.members(name) or set(), list(sold)
        core = {region for regions in self._in_country.values() if regions & inner for region in regions}
        found = [
            (len(regions), group, count)
            for group, regions in self._groups.items()
            if core and regions > core and (count := sum(place in regions for place in places))
        ]
        return min(found)[1:] if found else None
