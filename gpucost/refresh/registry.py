"""Every source by name; a file of one's own is a source, too."""

from gpucost.catalog.names import near
from gpucost.errors import UnknownNameError
from gpucost.refresh import (
    availability,
    aws,
    aws_spot,
    azure,
    gcp,
    genai_prices,
    gpuhunt,
    karpenter,
    lambda_cloud,
    litellm,
    oci,
    runpod,
    skypilot,
    table,
    vast,
)
from gpucost.refresh.source import Source

# in the order in which a refresh names them
_MODULES = (
    skypilot,
    gpuhunt,
    aws,
    aws_spot,
    azure,
    gcp,
    lambda_cloud,
    runpod,
    vast,
    oci,
    karpenter,
    litellm,
    genai_prices,
    availability,
)
SOURCES: dict[str, Source] = {source.name: source for module in _MODULES for source in module.SOURCES}


def source_of(name: str) -> Source:
    """Return the source that a name means, or that a file of prices is."""
    if name in SOURCES:
        return SOURCES[name]
    if table.is_table(name):
        return table.source_of_file(name)
    hint = "A file ends in .csv, .xlsx or .parquet, a store begins with https://."
    raise UnknownNameError("source of prices", name, near(name, SOURCES), hint)
