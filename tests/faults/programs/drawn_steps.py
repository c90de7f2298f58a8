# SPDX-License-Identifier: Apache-2.0
"""The steps of drawn programs on a GPU: one that takes a given time, and those that are the cause themselves."""

import torch
from common import Trainer


class Products(torch.nn.Module):
    """Products of matrices in bfloat16, as many as take these milliseconds on this GPU. With `fetched` the host waits for
    a number of each."""

    def __init__(self, milliseconds: float, size: int = 0, fetched: bool = False):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)
        self.matrix = torch.full((size or 4096,) * 2, 1e-3, device="cuda", dtype=torch.bfloat16)
        self.out, self.fetched = torch.empty_like(self.matrix), fetched
        self.products = 20
        self.multiply()  # the library starts
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.multiply()
        end.record()
        end.synchronize()
        self.products = max(1, round(20 * milliseconds / begin.elapsed_time(end)))

    def multiply(self) -> None:
        for _ in range(self.products):
            torch.mm(self.matrix, self.matrix, out=self.out)
            if self.fetched:
                self.out[0, 0].item()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.multiply()
        return self.linear(inputs)


class Wide(torch.nn.Module):
    """Large layers, in float32 or in bfloat16."""

    def __init__(self, size: int, low: bool):
        super().__init__()
        self.layers, self.low = torch.nn.Sequential(*(torch.nn.Linear(size, size) for _ in range(8))), low
        self.linear = torch.nn.Linear(size, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        values = inputs.mean().expand(4096, self.linear.in_features)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.low):
            return self.linear(self.layers(values))


class Deep(torch.nn.Module):
    """Many small layers; as a CUDA graph they are launched at once."""

    def __init__(self, layers: int):
        super().__init__()
        parts = (part for _ in range(layers // 2) for part in (torch.nn.Linear(64, 64), torch.nn.ReLU()))
        self.layers, self.linear = torch.nn.Sequential(*parts), torch.nn.Linear(64, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.linear(self.layers(inputs.mean().expand(8, 64).contiguous()))


class GpuTrainer(Trainer):
    """Steps on the GPU. The host waits for the loss of each, as a progress bar does, so that what it does between them takes
    time of its own; not where its copies or launches are planted."""

    def __init__(self, args, model: torch.nn.Module, graph: bool = False):
        super().__init__(args)
        self.model, self.waits = model.cuda(), not args.fixed and "pageable" in args.cause
        self.fetches = not {"pageable", "launches"} & set(args.cause.split("+"))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-9)
        self.forward = self.model
        if graph:
            self.forward = torch.cuda.make_graphed_callables(self.model, (torch.ones(1, 4, device="cuda"),))

    def step(self, batch: object) -> None:
        self.sent = self.sent_to_gpu(batch)
        self.optimizer.zero_grad(set_to_none=False)
        loss = self.forward(torch.ones(1, 4, device="cuda")).square().mean()
        loss.backward()
        self.optimizer.step()
        if self.fetches:
            loss.item()
        self.count()

    def sent_to_gpu(self, batch: object) -> object:
        """The tensors of the batch, copied."""
        if isinstance(batch, torch.Tensor):
            return batch.to("cuda", non_blocking=not self.waits)
        if isinstance(batch, dict):
            return {key: self.sent_to_gpu(value) for key, value in batch.items()}
        return [self.sent_to_gpu(value) for value in batch] if isinstance(batch, (list, tuple)) else batch


def trainer_of(args, planted: set[str]) -> Trainer:
    if not args.device:
        return Trainer(args)
    if "float32" in args.cause:
        return GpuTrainer(args, Wide(args.size, low="float32" not in planted))
    if "launches" in args.cause:
        return GpuTrainer(args, Deep(args.size), graph="launches" not in planted)
    fetched = "host_sync" in planted
    return GpuTrainer(args, Products(args.step_ms, args.size if "host_sync" in args.cause else 0, fetched))
