"""Where machines are sold: the clouds' own lists of zones, and public copies of them that need no key.

`machines` lists what one may start in a zone, `chips` the regions that have a chip, `prices` only where a price exists,
which proves little. Each list has a name; its newest version speaks.

    gcp      the Compute Engine API, https://docs.cloud.google.com/compute/docs/reference/rest/v1/machineTypes
             /aggregatedList; Google's page of regions and zones with GPUs
    azure    the list of resource SKUs, https://learn.microsoft.com/rest/api/compute/resource-skus/list
    aws      DescribeInstanceTypeOfferings, https://docs.aws.amazon.com/AWSEC2/latest/APIReference/
             API_DescribeInstanceTypeOfferings.html; the Spot Instance Advisor, which names where spot is sold
"""

import re
from datetime import date
from functools import partial
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, urlencode

from gpucost.errors import UsageError
from gpucost.refresh import aws_spot, karpenter, skypilot
from gpucost.refresh.aws import INSTANCES
from gpucost.refresh.source import Desk, Source, columns_of, content_of, csv_text, require

_MOST_PAGES = 500  # a list has tens: beyond, its pages lead in a circle
_MOST_BYTES = 64_000_000  # of one answer
RAW = "https://raw.githubusercontent.com/"
_GCP_INSTANCES = r"(a\d+[a-z]*|g[2-9])-.+"  # also of a series that nobody knows yet
_AZURE_INSTANCES = r"Standard_N\w+"
_PATTERNS = {"gcp": _GCP_INSTANCES, "azure": _AZURE_INSTANCES, "aws": INSTANCES}

Row = dict[str, Any]


def _row(provider: str, name: str, evidence: str, machine: str, region: str, **more: Any) -> Row:
    return {"provider": provider, "list": name, "evidence": evidence, "machine": machine, "region": region, **more}


# --- Google Cloud: the machine types of every zone, and the page of GPU zones.

_GCP_API = "https://compute.googleapis.com/compute/v1/projects/{project}/aggregated/machineTypes"
_GCP_KEYS = ("GCP_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN")
_GCP_PAGE = "https://docs.cloud.google.com/compute/docs/gpus/gpu-regions-zones"
# us-central1-a: the region, then the letter of the zone
_GCP_ZONE = re.compile(r"([a-z]+-[a-z]+\d+)-[a-z]")
# series as the page writes them, the longer names first: A4X Max is no A4X
_SERIES = {
    "A4X MAX": "GB300",
    "A4X": "GB200",
    "A4": "B200",
    "A3 ULTRA": "H200",
    "A3 HIGH": "H100",
    "A3 MEGA": "H100",
    "G4": "RTX PRO 6000",
}


def _fetch_gcp_zones(desk: Desk) -> None:
    """Ask the Compute Engine API for the machine types of every zone, page after page."""
    address = _GCP_API.format(project=quote(desk.key("GCP_PROJECT", "GOOGLE_CLOUD_PROJECT"), safe=""))
    headers = {"authorization": f"Bearer {desk.key(*_GCP_KEYS)}"}
    query = {"maxResults": "500", "returnPartialSuccess": "true"}  # a zone that is down leaves the others
    for _ in range(_MOST_PAGES):
        page = desk.client.json(f"{address}?{urlencode(query)}", headers=headers, most_bytes=_MOST_BYTES)
        rows = []
        for scope, entry in content_of(page, "items", kind=dict, fault="a page holds no zones").items():
            zone = _GCP_ZONE.fullmatch(scope.removeprefix("zones/"))
            types = entry.get("machineTypes") if isinstance(entry, dict) else None
            for item in types or ():
                name, state = str(item.get("name") or ""), (item.get("deprecated") or {}).get("state")
                if zone and re.fullmatch(_GCP_INSTANCES, name) and state not in ("OBSOLETE", "DELETED"):
                    rows.append(_row("gcp", "gcp-zones", "machines", name, zone[1], zone=zone[0], on_demand=True))
        desk.add(rows, "sales")
        if not (token := str(page.get("nextPageToken") or "")):
            return
        query["pageToken"] = token
    raise UsageError(f"there are more than {_MOST_PAGES} pages, which is not plausible.")


class _Table(HTMLParser):
    """The cells of every row of a page's tables, as texts."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a row or a cell."""
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._inside = True
            if not self.rows:  # a cell outside of any row, on a page that is not well formed
                self.rows.append([])
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        """End a cell."""
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        """Take in a cell's text."""
        if self._inside:
            self.rows[-1][-1] += f" {data}"


def _fetch_gcp_page(desk: Desk) -> None:
    """Read Google's page: a row names a zone and the series of machines with GPUs in it."""
    table = _Table()
    table.feed(desk.client.body(_GCP_PAGE, most_bytes=16_000_000).decode("utf-8", "replace"))
    rows = []
    for cells in table.rows:
        texts = [" ".join(cell.split()) for cell in cells]
        zone = next((match for text in texts[:2] if (match := _GCP_ZONE.fullmatch(text))), None)
        if zone is None:
            continue
        series, chips = " ".join(texts[1:]).upper(), []
        for name, chip in _SERIES.items():  # longer names of series are taken out first
            series, times = re.subn(rf"(?<![A-Z0-9]){name}(?![A-Z0-9])", " ", series)
            if times and chip not in chips:
                chips.append(chip)
        rows += [_row("gcp", "gcp-gpu-regions", "chips", f"gpu {chip} (page)", zone[1], zone=zone[0]) for chip in chips]
    if not rows:
        raise UsageError("the page names no zone with a GPU: its format has changed.")
    desk.add(rows, "sales")


# --- Azure: the SKUs that a subscription may order, with what restricts them.

_AZURE_API = "https://management.azure.com/subscriptions/{subscription}/providers/Microsoft.Compute/skus"
_AZURE_KEYS = ("AZURE_ACCESS_TOKEN",)


def _fetch_azure_skus(desk: Desk) -> None:
    """Ask Azure for its virtual machines by region, page after page."""
    address = _AZURE_API.format(subscription=quote(desk.key("AZURE_SUBSCRIPTION_ID"), safe=""))
    headers = {"authorization": f"Bearer {desk.key(*_AZURE_KEYS)}"}
    url, seen = f"{address}?{urlencode({'api-version': '2021-07-01'})}", set()
    for _ in range(_MOST_PAGES):
        if url in seen or not url.startswith("https://management.azure.com/"):  # the token goes to Azure alone
            raise UsageError("the pages lead in a circle or elsewhere.")
        seen.add(url)
        page = desk.client.json(url, headers=headers, most_bytes=_MOST_BYTES)
        rows = []
        for item in content_of(page, "value", fault="a page holds no list of SKUs"):
            if not isinstance(item, dict) or item.get("resourceType") != "virtualMachines":
                continue
            name = str(item.get("name") or "")
            if not re.fullmatch(_AZURE_INSTANCES, name):
                continue
            capabilities = {str(entry.get("name")): entry.get("value") for entry in item.get("capabilities") or ()}
            spot = {"True": True, "False": False}.get(str(capabilities.get("LowPriorityCapable", "")))
            # what a subscription may not order is still sold: restrictions are not looked at
            locations = item.get("locationInfo") or [{"location": place} for place in item.get("locations") or ()]
            for location in locations:
                region = str(location.get("location") or "").lower()
                for number in location.get("zones") or (None,):
                    zone = f"{region}-{number}" if number else None
                    rows.append(
                        _row("azure", "azure-skus", "machines", name, region, zone=zone, on_demand=True, spot=spot)
                    )
        desk.add(rows, "sales")
        if not (url := str(page.get("nextLink") or "")):
            return
    raise UsageError(f"there are more than {_MOST_PAGES} pages, which is not plausible.")


# --- AWS: the offerings of a region's zones, and where spot is sold.

ADVISOR = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"


def _fetch_aws_offerings(desk: Desk) -> None:
    """Ask every region for the instances that its zones offer."""
    action = {"Action": "DescribeInstanceTypeOfferings", "LocationType": "availability-zone-id"}

    def read(region: str) -> None:
        rows = []
        for page in aws_spot.pages(desk, region, action):
            for item in page:
                name = item.get("instanceType", "")
                if re.fullmatch(INSTANCES, name):
                    zone = item.get("location")
                    rows.append(_row("aws", "aws-offerings", "machines", name, region, zone=zone, on_demand=True))
        desk.add(rows, "sales")

    desk.each({region: partial(read, region) for region in desk.options.get("regions") or aws_spot.REGIONS})


def _fetch_aws_advisor(desk: Desk) -> None:
    """Read the Spot Instance Advisor: the instances of which spot is sold, by region."""
    answer = desk.client.json(ADVISOR, most_bytes=_MOST_BYTES)
    # region -> operating system -> instance
    places = content_of(answer, "spot_advisor", kind=dict, fault="the advisor names no regions")
    rows = [
        _row("aws", "aws-spot-advisor", "machines", name, region, spot=True)
        for region, systems in places.items()
        for name in (systems.get("Linux") or () if isinstance(systems, dict) else ())
        if re.fullmatch(INSTANCES, name)
    ]
    if not rows:
        raise UsageError("the advisor names no instance with accelerators: its format has changed.")
    desk.add(rows, "sales")


# --- Public copies of such lists.

SKYPILOT = {"aws": "skypilot-aws", "gcp": "skypilot-gcp"}  # made from the clouds' own lists of zones
_ANYCLOUD = "anycloud-sh/catalog/main/{provider}/vms.csv"
_MONITOR = "koen-nebius/price-monitor/main/capacity/store/last_snapshot.json"
_VANTAGE = "tsaol/aws-gpu/main/data/all_gpu_instances.js"


def _fetch_skypilot(desk: Desk) -> None:
    """Read the zones of SkyPilot's catalogues of AWS and Google."""
    desk.each(
        {
            cloud: partial(_zones_of_csv, desk, skypilot.ADDRESS.format(cloud=cloud), cloud, name, "machines")
            for cloud, name in SKYPILOT.items()
        }
    )


def _fetch_anycloud(desk: Desk) -> None:
    """Read the catalogue of anycloud: zones of Google, and the regions of Azure in which a price exists."""
    # of Azure it multiplies machines by regions that have a price
    kinds = {"gcp": "machines", "azure": "prices"}
    desk.each(
        {
            cloud: partial(
                _zones_of_csv, desk, RAW + _ANYCLOUD.format(provider=cloud), cloud, f"anycloud-{cloud}", evidence
            )
            for cloud, evidence in kinds.items()
        }
    )


def _zones_of_csv(desk: Desk, url: str, provider: str, name: str, evidence: str) -> None:
    """Read a catalogue by the names of its columns; of Google a TPU stands among the accelerators."""
    file = desk.client.file(url, desk.path(f"{name}.csv"))
    source = csv_text(file)
    columns = columns_of(desk, source)
    require(columns, ("InstanceType", "AcceleratorName", "Region", "Price", "SpotPrice"))
    zone = "AvailabilityZone" if "AvailabilityZone" in columns else "NULL"
    # a TPU's row has no instance type: its accelerator is the machine
    tpu = "CASE WHEN starts_with(AcceleratorName, 'tpu-') THEN AcceleratorName END"
    machine = f"coalesce(InstanceType, {tpu})" if provider == "gcp" else "InstanceType"
    pattern = f"{_PATTERNS[provider]}|tpu-.+" if provider == "gcp" else _PATTERNS[provider]
    desk.select(
        f"""SELECT '{provider}' AS provider, '{name}' AS list, '{evidence}' AS evidence, {machine} AS machine,
        Region AS region, nullif(trim({zone}), '') AS zone, CASE WHEN Price IS NOT NULL THEN true END AS on_demand,
        CASE WHEN SpotPrice IS NOT NULL THEN true END AS spot
        FROM {source} WHERE regexp_full_match({machine}, '{pattern}') AND Region IS NOT NULL""",
        "sales",
    )


def _fetch_monitor(desk: Desk) -> None:
    """Read a watcher's last look at Google's page of GPU zones."""
    rows = []
    for item in content_of(desk.client.json(RAW + _MONITOR, most_bytes=_MOST_BYTES), fault="the snapshot is no list"):
        # the watcher shortens one name; the others are those of Google's page
        chip = {"RTX6000": "RTX PRO 6000"}.get(item.get("gpu_model"), item.get("gpu_model"))
        region = str(item.get("region") or "global")
        if (item.get("provider"), item.get("metric_type")) == ("gcp", "listed_offering") and region != "global":
            seen_on = str(item.get("fetched_at") or "")[:10]
            name = f"gpu {chip} (page)"
            rows.append(_row("gcp", "gcp-gpu-regions", "chips", name, region, observed_on=seen_on))
    if not rows:
        raise UsageError("the snapshot names no region of Google: its format has changed.")
    desk.add(rows, "sales")


def _fetch_vantage(desk: Desk) -> None:
    """Read the regions in which AWS has a price, as a page copies them from Vantage."""
    text = desk.client.body(RAW + _VANTAGE, most_bytes=_MOST_BYTES).decode("utf-8", "replace")
    updated = re.search(r"Last updated: (\d{4}-\d\d-\d\d)", text)
    seen_on = date.fromisoformat(updated[1]) if updated else None
    # a script that holds JSON: names of instances, below each its regions as keys of maps
    rows, machine = [], ""
    for key, value, opened in re.findall(r'"([^"]+)":\s*(?:"([^"]*)"|(\{))?', text):
        if key == "name":
            machine = value
        elif opened and re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d(-[a-z]+-\d)?", key) and re.fullmatch(INSTANCES, machine):
            rows.append(_row("aws", "vantage-aws", "prices", machine, key, on_demand=True, observed_on=seen_on))
    if not rows:
        raise UsageError("it names no instance with a price: its format has changed.")
    desk.add(rows, "sales")


def _fetch_karpenter(desk: Desk) -> None:
    """Read the regions of the price tables that the autoscalers ship; Google's agree with its zones."""
    kinds = {"aws": "prices", "azure": "prices", "gcp": "machines"}

    def read(cloud: str, evidence: str) -> None:
        rows = [
            _row(
                cloud,
                f"karpenter-{cloud}",
                evidence,
                str(row["instance_type"]),
                str(row["region"]),
                observed_on=row.get("observed_on"),
                on_demand=row["option"] == "on_demand" or None,  # a price says nothing of the other option
                spot=row["option"] == "spot" or None,
            )
            for row in karpenter.table_rows(desk, cloud)
        ]
        desk.add(rows, "sales")

    desk.each({cloud: partial(read, cloud, evidence) for cloud, evidence in kinds.items()})


def _source(name: str, publisher: str, title: str, locator: str, fetch: Any, **more: Any) -> Source:
    return Source(name, publisher, title, locator, fetch, kind="availability", **more)


SOURCES = (
    _source(
        "gcp-zones", "Google Cloud", "Compute Engine machine types by zone", _GCP_API, _fetch_gcp_zones, keys=_GCP_KEYS
    ),
    _source("gcp-gpu-regions", "Google Cloud", "GPU regions and zones", _GCP_PAGE, _fetch_gcp_page),
    _source("azure-skus", "Microsoft Azure", "Compute resource SKUs", _AZURE_API, _fetch_azure_skus, keys=_AZURE_KEYS),
    _source(
        "aws-offerings",
        "Amazon Web Services",
        "EC2 instance type offerings",
        aws_spot.ADDRESS,
        _fetch_aws_offerings,
        keys=aws_spot.KEYS,
        heeds=("mirror", "regions"),
    ),
    _source("aws-spot-advisor", "Amazon Web Services", "Spot Instance Advisor", ADVISOR, _fetch_aws_advisor),
    _source(
        "skypilot-zones",
        "skypilot-org/skypilot-catalog",
        "SkyPilot catalog, zones",
        skypilot.ADDRESS.format(cloud="<cloud>"),
        _fetch_skypilot,
    ),
    _source("anycloud-zones", "anycloud-sh/catalog", "anycloud catalog, zones", RAW + _ANYCLOUD, _fetch_anycloud),
    _source(
        "price-monitor-zones",
        "koen-nebius/price-monitor",
        "Google's GPU regions as last watched",
        RAW + _MONITOR,
        _fetch_monitor,
    ),
    _source(
        "vantage-regions", "tsaol/aws-gpu", "EC2 instances with accelerators by region", RAW + _VANTAGE, _fetch_vantage
    ),
    _source(
        "karpenter-regions",
        "the Karpenter providers of AWS, Azure and GCP",
        "Karpenter price tables, regions",
        RAW + karpenter.FILES["aws"][0],
        _fetch_karpenter,
    ),
)
