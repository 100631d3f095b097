"""The API of EC2, asked with the account's own key: the spot price history, what a zone's capacity costs now.

Requests are signed by AWS Signature Version 4: HMAC-SHA256 chains over date, region and service.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hmac
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

from gpucost import clock
from gpucost.errors import UsageError
from gpucost.refresh.aws import INSTANCES
from gpucost.refresh.source import Desk, Source

ADDRESS = "https://ec2.{region}.amazonaws.com/"
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1")
FAMILIES = ("p*", "g*", "trn*", "inf*", "dl*")
_SPACE = "{http://ec2.amazonaws.com/doc/2016-11-15/}"
_MOST_PAGES = 200
KEYS = ("AWS_ACCESS_KEY_ID",)


def fetch(desk: Desk) -> None:
    """Ask every region, page after page."""
    for region in desk.asked.get("regions") or REGIONS:
        desk.add(_rows(desk, region))


def _rows(desk: Desk, region: str) -> Iterator[dict[str, object]]:
    import re

    wanted, now = re.compile(INSTANCES), clock.instant()
    asked = {
        "Action": "DescribeSpotPriceHistory",
        "StartTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "EndTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "ProductDescription.1": "Linux/UNIX",
    }
    for page in pages(desk, region, asked):
        for text in page:
            if wanted.fullmatch(text.get("instanceType", "")):
                yield {
                    "provider": "aws",
                    "instance_type": text["instanceType"],
                    "region": region,
                    "option": "spot",
                    "usd_per_hour": text.get("spotPrice"),
                    "meter": text.get("productDescription"),
                }


def pages(desk: Desk, region: str, asked: Mapping[str, str]) -> Iterator[list[dict[str, str]]]:
    """Yield the items of each page of an answer about instances with accelerators, as texts by name."""
    given = {
        **asked,
        "Version": "2016-11-15",
        "MaxResults": "1000",
        "Filter.1.Name": "instance-type",
        **{f"Filter.1.Value.{i}": name for i, name in enumerate(FAMILIES, 1)},
    }
    token = ""
    for _ in range(_MOST_PAGES):
        page = _page(desk, region, given, token)
        items = page.iterfind(f".//{_SPACE}item")
        yield [{child.tag.removeprefix(_SPACE): child.text or "" for child in item} for item in items]
        token = page.findtext(f"{_SPACE}nextToken") or ""
        if not token:
            return
    raise UsageError(f"{region}: the answer has more than {_MOST_PAGES} pages, which is not plausible.")


def _page(desk: Desk, region: str, asked: Mapping[str, str], token: str) -> ElementTree.Element:
    now = clock.instant()
    body = urlencode(sorted({**asked, **({"NextToken": token} if token else {})}.items()), quote_via=quote)
    url = ADDRESS.format(region=region)
    secret = desk.key("AWS_SECRET_ACCESS_KEY")
    headers = signed(body, region, desk.key(*KEYS), secret, os.environ.get("AWS_SESSION_TOKEN", ""), now)
    answer = desk.client.body(url, method="POST", content=body, headers=headers, most_bytes=32_000_000)
    if b"<!DOCTYPE" in answer or b"<!ENTITY" in answer:
        raise UsageError("the answer declares XML entities, which EC2 never does.")
    try:
        return ElementTree.fromstring(answer)
    except ElementTree.ParseError:
        raise UsageError("the answer is not XML.") from None


def signed(body: str, region: str, key: str, secret: str, session: str, now: datetime) -> dict[str, str]:
    """Return the headers that sign a request to EC2."""
    moment, day, host = f"{now:%Y%m%dT%H%M%SZ}", f"{now:%Y%m%d}", f"ec2.{region}.amazonaws.com"
    given = {"content-type": "application/x-www-form-urlencoded; charset=utf-8", "host": host, "x-amz-date": moment}
    given |= {"x-amz-security-token": session} if session else {}
    names = ";".join(sorted(given))
    lines = "".join(f"{name}:{given[name]}\n" for name in sorted(given))
    canonical = f"POST\n/\n\n{lines}\n{names}\n{sha256(body.encode()).hexdigest()}"
    scope = f"{day}/{region}/ec2/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
    chain = f"AWS4{secret}".encode()
    for part in (day, region, "ec2", "aws4_request"):
        chain = hmac.new(chain, part.encode(), sha256).digest()
    signature = hmac.new(chain, text.encode(), sha256).hexdigest()
    stamp = f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**given, "authorization": stamp}


SOURCES = (
    Source(
        "aws-spot",
        "Amazon Web Services",
        "EC2 spot price history",
        ADDRESS,
        fetch,
        keys=KEYS,
        heeds=("mirror", "regions"),
        own_list=True,
    ),
)
