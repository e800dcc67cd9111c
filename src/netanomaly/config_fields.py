"""What the sections of the configuration are made of."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from netanomaly.durations import check_auto_rows, check_auto_span, check_span


class Section(BaseModel):
    """A section of the config: unknown keys, NaN, and values of the wrong type are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def one_or_list(value: Any) -> Any:
    """One item where a list is expected stands for a list of one."""
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, (str, int)) and not isinstance(value, bool) else value


def of_kind(default: str) -> BeforeValidator:
    """A section with several kinds: a plain word stands for the kind, and a section without one is the default's."""

    def expand(value: Any) -> Any:
        if isinstance(value, str):
            return {"kind": value}
        return {"kind": default, **value} if isinstance(value, dict) else value

    return BeforeValidator(expand)


SpanField = Annotated[int | str, AfterValidator(check_span)]
AutoRowsField = Annotated[int | str, AfterValidator(check_auto_rows)]
AutoSpanField = Annotated[int | str, AfterValidator(check_auto_span)]
Listed = BeforeValidator(one_or_list)
