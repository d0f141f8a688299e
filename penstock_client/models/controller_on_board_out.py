from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast

if TYPE_CHECKING:
    from ..models.control_action_out import ControlActionOut
    from ..models.lease_out import LeaseOut
    from ..models.pause_out import PauseOut
    from ..models.task_run_out import TaskRunOut


T = TypeVar("T", bound="ControllerOnBoardOut")


@_attrs_define
class ControllerOnBoardOut:
    """Controller on the status board.

    Attributes:
        name (str): * `provision` - provisioning
            * `deploy` - deploying
            * `scale` - scaling
        pauses (list[PauseOut]): Pauses of controllers that are in force.
        leases (list[LeaseOut]): Leases that the controller holds.
        run (None | TaskRunOut): Last run of the controller's task; null if it never ran.
        overdue (bool): True if the controller has not reported in time.
        last (ControlActionOut | None): Its newest change or refusal.
        waiting (list[str]): Pending work.
    """

    name: str
    pauses: list[PauseOut]
    leases: list[LeaseOut]
    run: None | TaskRunOut
    overdue: bool
    last: ControlActionOut | None
    waiting: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.control_action_out import ControlActionOut  # noqa: PLC0415
        from ..models.lease_out import LeaseOut  # noqa: PLC0415
        from ..models.pause_out import PauseOut  # noqa: PLC0415
        from ..models.task_run_out import TaskRunOut  # noqa: PLC0415

        name = self.name

        pauses = []
        for pauses_item_data in self.pauses:
            pauses_item = pauses_item_data.to_dict()
            pauses.append(pauses_item)

        leases = []
        for leases_item_data in self.leases:
            leases_item = leases_item_data.to_dict()
            leases.append(leases_item)

        run: dict[str, Any] | None
        if isinstance(self.run, TaskRunOut):
            run = self.run.to_dict()
        else:
            run = self.run

        overdue = self.overdue

        last: dict[str, Any] | None
        if isinstance(self.last, ControlActionOut):
            last = self.last.to_dict()
        else:
            last = self.last

        waiting = self.waiting

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "pauses": pauses,
                "leases": leases,
                "run": run,
                "overdue": overdue,
                "last": last,
                "waiting": waiting,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.control_action_out import ControlActionOut  # noqa: PLC0415
        from ..models.lease_out import LeaseOut  # noqa: PLC0415
        from ..models.pause_out import PauseOut  # noqa: PLC0415
        from ..models.task_run_out import TaskRunOut  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        pauses = []
        _pauses = d.pop("pauses")
        for pauses_item_data in _pauses:
            pauses_item = PauseOut.from_dict(pauses_item_data)

            pauses.append(pauses_item)

        leases = []
        _leases = d.pop("leases")
        for leases_item_data in _leases:
            leases_item = LeaseOut.from_dict(leases_item_data)

            leases.append(leases_item)

        def _parse_run(data: object) -> None | TaskRunOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                run_type_0 = TaskRunOut.from_dict(data)

                return run_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TaskRunOut, data)

        run = _parse_run(d.pop("run"))

        overdue = d.pop("overdue")

        def _parse_last(data: object) -> ControlActionOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                last_type_0 = ControlActionOut.from_dict(data)

                return last_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ControlActionOut | None, data)

        last = _parse_last(d.pop("last"))

        waiting = cast(list[str], d.pop("waiting"))

        controller_on_board_out = cls(
            name=name,
            pauses=pauses,
            leases=leases,
            run=run,
            overdue=overdue,
            last=last,
            waiting=waiting,
        )

        controller_on_board_out.additional_properties = d
        return controller_on_board_out

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
