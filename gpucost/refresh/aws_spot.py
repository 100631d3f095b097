"""The API of EC2, asked with the account's own key: the spot price history, what a zone's capacity costs now.

Requests are signed by AWS Signature Version 4: HMAC-SHA256 chains over date, region and service.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hmac
import os
import re
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
# asked unless others are named
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1")
FAMILIES = ("p*", "g*", "trn*", "inf*", "dl*")
_SPACE = "{http://ec2.amazonaws.com/doc/2016-11-15/}"
_MOST_PAGES = 200
KEYS = ("AWS_ACCESS_KEY_ID",)


def fetch(desk: Desk) -> None:
    """Ask every region, page after page."""
    instances = re.compile(INSTANCES)
    for region in desk.options.get("regions") or REGIONS:
        now = clock.instant()
        action = {
            "Action": "DescribeSpotPriceHistory",
            "StartTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",  # of a span of nothing it returns the prices that hold
            "EndTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "ProductDescription.1": "Linux/UNIX",
        }
        rows = []
        for page in pages(desk, region, action):
            for item in page:
                if instances.fullmatch(item.get("instanceType", "")):
                    rows.append(
                        {
                            "provider": "aws",
                            "instance_type": item["instanceType"],
                            "region": region,
                            "option": "spot",
                            "usd_per_hour": item.get("spotPrice"),
                            "meter": item.get("productDescription"),
                        }
                    )
        desk.add(rows)


def pages(desk: Desk, region: str, action: Mapping[str, str]) -> Iterator[list[dict[str, str]]]:
    """Yield the items of each page of an answer about instances with accelerators, as texts by name."""
    parameters = {
        **action,
        "Version": "2016-11-15",
        "MaxResults": "1000",
        "Filter.1.Name": "instance-type",
        **{f"Filter.1.Value.{i}": name for i, name in enumerate(FAMILIES, 1)},
    }
    for _ in range(_MOST_PAGES):
        now = clock.instant()  # a signature holds for some minutes
        body = urlencode(sorted(parameters.items()), quote_via=quote)  # quote: signing knows no + for a space
        secret = desk.key("AWS_SECRET_ACCESS_KEY")
        headers = signed(body, region, desk.key(*KEYS), secret, os.environ.get("AWS_SESSION_TOKEN", ""), now)
        url = ADDRESS.format(region=region)
        answer = desk.client.body(url, method="POST", content=body, headers=headers, most_bytes=32_000_000)
        if b"<!DOCTYPE" in answer or b"<!ENTITY" in answer:  # they unpack without end
            raise UsageError("the answer declares XML entities, which EC2 never does.")
        try:
            page = ElementTree.fromstring(answer)
        except ElementTree.ParseError:
            raise UsageError("the answer is not XML.") from None
        items = page.iterfind(f".//{_SPACE}item")
        yield [{child.tag.removeprefix(_SPACE): child.text or "" for child in item} for item in items]
        token = page.findtext(f"{_SPACE}nextToken") or ""
        if not token:
            return
        parameters["NextToken"] = token
    raise UsageError(f"{region}: the answer has more than {_MOST_PAGES} pages, which is not plausible.")


def signed(body: str, region: str, key: str, secret: str, session: str, now: datetime) -> dict[str, str]:
    """Return the headers that sign a request to EC2."""
    moment, day, host = f"{now:%Y%m%dT%H%M%SZ}", f"{now:%Y%m%d}", f"ec2.{region}.amazonaws.com"
    headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8", "host": host, "x-amz-date": moment}
    headers |= {"x-amz-security-token": session} if session else {}
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    # method, path, no query, headers, their names, hash of the body: the order is part of the signature
    canonical = f"POST\n/\n\n{lines}\n{names}\n{sha256(body.encode()).hexdigest()}"
    scope = f"{day}/{region}/ec2/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
    # the key of a day, a region and a service: who learns it can sign nothing else
    chain = f"AWS4{secret}".encode()
    for part in (day, region, "ec2", "aws4_request"):
        chain = hmac.new(chain, part.encode(), sha256).digest()
    signature = hmac.new(chain, text.encode(), sha256).hexdigest()
    stamp = f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": stamp}


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
