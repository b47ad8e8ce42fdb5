"""Compile steps on other machines, through dask.distributed (``build --executor dask://HOST:PORT``).

Start ``dask scheduler`` on one machine and ``dask worker HOST:PORT`` on each that shall compile, in environments with
the same version of ``kernel-builder[build,cluster]`` and a host compiler of the same identity. A worker keeps toolkits,
headers and results in a store of its own, the folder that its KERNEL_BUILDER_CACHE names, and brings what its own lock
names into it when a step first asks.

A step travels as plain data and the bytes of its sources (``orders``), and is compiled on the worker as a local build
would compile it (``worker``). Its result comes back with its hash, and is adopted under the key that was asked for.
What has inputs (packing, embedding, linking) runs where the build was started: that takes less time than its inputs
take to travel.

Whoever reaches a dask scheduler can run programs on its workers, and they on its clients: use a trusted network, or
certificates (``dask+tls://HOST:PORT``, with dask's own ``distributed.comm.tls`` configuration). A hash that comes with
a result shows damage on the way, not a worker that lies.
"""
