# SPDX-License-Identifier: Apache-2.0
# Work of the training loop besides model and data: saving, logging; and the sampler in next(). Part of watch.py.

_SHORT = 20_000  # ns: what takes less is not written; a twentieth of a step that matters is longer

# Functions and methods that save or log, in modules that the program has imported: looked for when an epoch begins.
_COSTS = {
    SAVE: "numpy:save,savez,savez_compressed safetensors.torch:save_file torch.distributed.checkpoint:save "
    "torch.distributed.checkpoint.state_dict_saver:save",
    LOG: "logging:Handler.handle torch.utils.tensorboard.writer:SummaryWriter.add_scalar,SummaryWriter.add_scalars,"
    "SummaryWriter.add_histogram,SummaryWriter.add_image,SummaryWriter.add_images,SummaryWriter.add_figure,"
    "SummaryWriter.add_text,SummaryWriter.add_embedding,SummaryWriter.flush wandb.sdk.wandb_run:Run.log "
    "mlflow.tracking.fluent:log_metric,log_metrics,log_artifact matplotlib.figure:Figure.savefig "
    "torchvision.utils:save_image",
}  # fmt: skip
_costs_seen = 0  # modules when they were last looked for


def _cost(kind: int):
    """A function whose time in the training thread is not the model's. Only the outermost call counts."""

    def make(original):
        def timed(*args, **kwargs):
            local = _local
            if not local.trains or local.costing or local.job is not None:
                return original(*args, **kwargs)
            local.costing, start = 1, _clock()
            try:
                return original(*args, **kwargs)
            finally:
                local.costing = 0
                _note_cost(kind, start)

        return functools.update_wrapper(timed, original)

    return make


@_guarded
def _note_cost(kind, start):
    took = _clock() - start
    if took > _SHORT and _me is not None:
        _me.write(kind, start, took)


@_guarded
def _look_for_costs():
    global _costs_seen
    if len(sys.modules) == _costs_seen:
        return
    _costs_seen = len(sys.modules)
    for kind, text in _COSTS.items():
        for entry in text.split():
            module, _, paths = entry.partition(":")
            if module in sys.modules:
                for path in paths.split(","):
                    _replace(sys.modules[module], path, _cost(kind))


def _drawing(original):
    """_next_index() of an iterator: the sampler, in the training thread."""

    def _next_index(self):
        start = _clock()
        out = original(self)
        if _on and _me is not None:
            _drawn(self, start, out)
        return out

    return functools.update_wrapper(_next_index, original)


@_guarded
def _drawn(iterator, start, indices):
    took = _clock() - start
    known = getattr(iterator, "_stoker_watch", None)
    if _TRY and known is not None:
        _note_used(known, indices)
    if took > _SHORT and known is not None:
        _me.write(SAMPLE, start, took, _UNKNOWN, known.number)
