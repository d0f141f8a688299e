from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.cell_on_board_out import CellOnBoardOut
    from ..models.common_cause_out import CommonCauseOut
    from ..models.controller_on_board_out import ControllerOnBoardOut
    from ..models.kafka_out import KafkaOut
    from ..models.oldest_waiting_out import OldestWaitingOut
    from ..models.problem_on_board_out import ProblemOnBoardOut
    from ..models.replicas_out import ReplicasOut


T = TypeVar("T", bound="BoardOut")


@_attrs_define
class BoardOut:
    """The status board.

    Attributes:
        now (datetime.datetime): Time of the response.
        problems (list[ProblemOnBoardOut]): Those that affect most tenants first.
        common_causes (list[CommonCauseOut]): Causes that affect several pipes or tenants.
        cells (list[CellOnBoardOut]): Cells of the installation.
        controllers (list[ControllerOnBoardOut]): Controllers of the control plane.
        kafka (KafkaOut | None): Null: not checked yet.
        ingest (ReplicasOut): Ingest replicas.
        oldest (None | OldestWaitingOut): Oldest waiting message; null if none waits.
        lost (int): Messages lost in the last 24 hours.
    """

    now: datetime.datetime
    problems: list[ProblemOnBoardOut]
    common_causes: list[CommonCauseOut]
    cells: list[CellOnBoardOut]
    controllers: list[ControllerOnBoardOut]
    kafka: KafkaOut | None
    ingest: ReplicasOut
    oldest: None | OldestWaitingOut
    lost: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.cell_on_board_out import CellOnBoardOut  # noqa: PLC0415
        from ..models.common_cause_out import CommonCauseOut  # noqa: PLC0415
        from ..models.controller_on_board_out import ControllerOnBoardOut  # noqa: PLC0415
        from ..models.kafka_out import KafkaOut  # noqa: PLC0415
        from ..models.oldest_waiting_out import OldestWaitingOut  # noqa: PLC0415
        from ..models.problem_on_board_out import ProblemOnBoardOut  # noqa: PLC0415
        from ..models.replicas_out import ReplicasOut  # noqa: PLC0415

        now = self.now.isoformat()

        problems = []
        for problems_item_data in self.problems:
            problems_item = problems_item_data.to_dict()
            problems.append(problems_item)

        common_causes = []
        for common_causes_item_data in self.common_causes:
            common_causes_item = common_causes_item_data.to_dict()
            common_causes.append(common_causes_item)

        cells = []
        for cells_item_data in self.cells:
            cells_item = cells_item_data.to_dict()
            cells.append(cells_item)

        controllers = []
        for controllers_item_data in self.controllers:
            controllers_item = controllers_item_data.to_dict()
            controllers.append(controllers_item)

        kafka: dict[str, Any] | None
        if isinstance(self.kafka, KafkaOut):
            kafka = self.kafka.to_dict()
        else:
            kafka = self.kafka

        ingest = self.ingest.to_dict()

        oldest: dict[str, Any] | None
        if isinstance(self.oldest, OldestWaitingOut):
            oldest = self.oldest.to_dict()
        else:
            oldest = self.oldest

        lost = self.lost

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "now": now,
                "problems": problems,
                "common_causes": common_causes,
                "cells": cells,
                "controllers": controllers,
                "kafka": kafka,
                "ingest": ingest,
                "oldest": oldest,
                "lost": lost,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cell_on_board_out import CellOnBoardOut  # noqa: PLC0415
        from ..models.common_cause_out import CommonCauseOut  # noqa: PLC0415
        from ..models.controller_on_board_out import ControllerOnBoardOut  # noqa: PLC0415
        from ..models.kafka_out import KafkaOut  # noqa: PLC0415
        from ..models.oldest_waiting_out import OldestWaitingOut  # noqa: PLC0415
        from ..models.problem_on_board_out import ProblemOnBoardOut  # noqa: PLC0415
        from ..models.replicas_out import ReplicasOut  # noqa: PLC0415

        d = dict(src_dict)
        now = datetime.datetime.fromisoformat(d.pop("now"))

        problems = []
        _problems = d.pop("problems")
        for problems_item_data in _problems:
            problems_item = ProblemOnBoardOut.from_dict(problems_item_data)

            problems.append(problems_item)

        common_causes = []
        _common_causes = d.pop("common_causes")
        for common_causes_item_data in _common_causes:
            common_causes_item = CommonCauseOut.from_dict(common_causes_item_data)

            common_causes.append(common_causes_item)

        cells = []
        _cells = d.pop("cells")
        for cells_item_data in _cells:
            cells_item = CellOnBoardOut.from_dict(cells_item_data)

            cells.append(cells_item)

        controllers = []
        _controllers = d.pop("controllers")
        for controllers_item_data in _controllers:
            controllers_item = ControllerOnBoardOut.from_dict(controllers_item_data)

            controllers.append(controllers_item)

        def _parse_kafka(data: object) -> KafkaOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                kafka_type_0 = KafkaOut.from_dict(data)

                return kafka_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(KafkaOut | None, data)

        kafka = _parse_kafka(d.pop("kafka"))

        ingest = ReplicasOut.from_dict(d.pop("ingest"))

        def _parse_oldest(data: object) -> None | OldestWaitingOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                oldest_type_0 = OldestWaitingOut.from_dict(data)

                return oldest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | OldestWaitingOut, data)

        oldest = _parse_oldest(d.pop("oldest"))

        lost = d.pop("lost")

        board_out = cls(
            now=now,
            problems=problems,
            common_causes=common_causes,
            cells=cells,
            controllers=controllers,
            kafka=kafka,
            ingest=ingest,
            oldest=oldest,
            lost=lost,
        )

        board_out.additional_properties = d
        return board_out

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
