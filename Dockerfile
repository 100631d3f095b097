# Images of gpucost: `docker build -t gpucost .` runs commands, `--target worker` works for sweeps on a Dask cluster.
# The facts lie in the wheel: images of one commit answer alike, without a network. A worker refuses a chunk where its
# facts, its day or its versions differ from those of the machine that asks. `--build-arg PYTHON=3.14` takes another
# Python: Dask wants the same one on workers and on the machine that asks.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim AS wheel
WORKDIR /source
RUN pip install --no-cache-dir build
COPY . .
RUN python -m build --wheel --outdir /wheel

FROM python:${PYTHON}-slim AS base
COPY --from=wheel /wheel /wheel
RUN useradd --create-home gpucost
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /work

# docker build --target worker -t gpucost-worker .
# docker run gpucost-worker tcp://scheduler:8786 --nthreads 1
FROM base AS worker
RUN pip install --no-cache-dir "$(ls /wheel/*.whl)[cluster]" && chown gpucost /work
USER gpucost
RUN gpucost estimate --model 8b --tokens 1b --gpu h100-sxm --usd-per-gpu-hour 2 --top 1 >/dev/null
ENTRYPOINT ["dask", "worker"]

# docker run --rm -v "$PWD:/work" gpucost estimate --model 8b --tokens 100b
# docker run --rm -v "$PWD:/work" gpucost serve --static plan --question "model=8b&tokens=100b"
# docker run --rm -i gpucost mcp                    # tools for agents; the page itself answers this machine alone
FROM base AS command
RUN pip install --no-cache-dir "$(ls /wheel/*.whl)[report,serve,pdf,mcp]" && chown gpucost /work
USER gpucost
RUN gpucost estimate --model 8b --tokens 1b --gpu h100-sxm --usd-per-gpu-hour 2 --top 1 >/dev/null
ENTRYPOINT ["gpucost"]
CMD ["--help"]
