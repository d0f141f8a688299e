from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, BinaryIO, TextIO, TYPE_CHECKING, Generator

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

from typing import cast
import datetime

if TYPE_CHECKING:
    from ..models.bins_out import BinsOut
    from ..models.destination_bins_out import DestinationBinsOut
    from ..models.loss_out import LossOut


T = TypeVar("T", bound="MinuteOut")


@_attrs_define
class MinuteOut:
    """Account of one minute, as it is now.

    Attributes:
        minute (int): Minutes since 1970-01-01T00:00Z: the minute of the message's event.
        starts (datetime.datetime): Start of the minute.
        sealed_at (datetime.datetime | None): Time of the seal, after which loss is final; a retry or a redrive may
            still change the bins. Null while messages may still arrive.
        accepted (int): Events that ingest accepted.
        unacked (int): Events that were processed although ingest did not accept them.
        late (int): Messages whose outcome changed after the seal, such as by a retry or a redrive.
        bins (BinsOut): Number of messages in each bin; a message counts once for each destination.
        bins_at_seal (BinsOut | None): `bins` at the time of the seal; null while the minute is open.
        destinations (list[DestinationBinsOut]): Bins of each destination.
        loss (LossOut): Loss by node and end to end. After the route, a message counts once for each of its
            destinations.
    """

    minute: int
    starts: datetime.datetime
    sealed_at: datetime.datetime | None
    accepted: int
    unacked: int
    late: int
    bins: BinsOut
    bins_at_seal: BinsOut | None
    destinations: list[DestinationBinsOut]
    loss: LossOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.bins_out import BinsOut  # noqa: PLC0415
        from ..models.destination_bins_out import DestinationBinsOut  # noqa: PLC0415
        from ..models.loss_out import LossOut  # noqa: PLC0415

        minute = self.minute

        starts = self.starts.isoformat()

        sealed_at: None | str
        if isinstance(self.sealed_at, datetime.datetime):
            sealed_at = self.sealed_at.isoformat()
        else:
            sealed_at = self.sealed_at

        accepted = self.accepted

        unacked = self.unacked

        late = self.late

        bins = self.bins.to_dict()

        bins_at_seal: dict[str, Any] | None
        if isinstance(self.bins_at_seal, BinsOut):
            bins_at_seal = self.bins_at_seal.to_dict()
        else:
            bins_at_seal = self.bins_at_seal

        destinations = []
        for destinations_item_data in self.destinations:
            destinations_item = destinations_item_data.to_dict()
            destinations.append(destinations_item)

        loss = self.loss.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "minute": minute,
                "starts": starts,
                "sealed_at": sealed_at,
                "accepted": accepted,
                "unacked": unacked,
                "late": late,
                "bins": bins,
                "bins_at_seal": bins_at_seal,
                "destinations": destinations,
                "loss": loss,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.bins_out import BinsOut  # noqa: PLC0415
        from ..models.destination_bins_out import DestinationBinsOut  # noqa: PLC0415
        from ..models.loss_out import LossOut  # noqa: PLC0415

        d = dict(src_dict)
        minute = d.pop("minute")

        starts = datetime.datetime.fromisoformat(d.pop("starts"))

        def _parse_sealed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                sealed_at_type_0 = datetime.datetime.fromisoformat(data)

                return sealed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        sealed_at = _parse_sealed_at(d.pop("sealed_at"))

        accepted = d.pop("accepted")

        unacked = d.pop("unacked")

        late = d.pop("late")

        bins = BinsOut.from_dict(d.pop("bins"))

        def _parse_bins_at_seal(data: object) -> BinsOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                bins_at_seal_type_0 = BinsOut.from_dict(data)

                return bins_at_seal_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BinsOut | None, data)

        bins_at_seal = _parse_bins_at_seal(d.pop("bins_at_seal"))

        destinations = []
        _destinations = d.pop("destinations")
        for destinations_item_data in _destinations:
            destinations_item = DestinationBinsOut.from_dict(destinations_item_data)

            destinations.append(destinations_item)

        loss = LossOut.from_dict(d.pop("loss"))

        minute_out = cls(
            minute=minute,
            starts=starts,
            sealed_at=sealed_at,
            accepted=accepted,
            unacked=unacked,
            late=late,
            bins=bins,
            bins_at_seal=bins_at_seal,
            destinations=destinations,
            loss=loss,
        )

        minute_out.additional_properties = d
        return minute_out

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
