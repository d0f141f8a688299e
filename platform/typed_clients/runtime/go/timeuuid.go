package PACKAGE

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"
)

// TimeUUID is a UUID whose clock orders events. Version 7 (RFC 9562) is created; version 1 is accepted, too.
type TimeUUID [16]byte

const (
	earliestUS        = 946_684_800_000_000 // 2000-01-01, as Penstock checks it
	gregorianToUnixUS = 12_219_292_800_000_000
)

var clock struct {
	sync.Mutex
	last uint64
}

// NewTimeUUID returns a new version 7: milliseconds, twelve bits of their fraction, and random bits. They ascend.
func NewTimeUUID() TimeUUID {
	now := time.Now()
	ms := now.UnixMilli()
	fraction := uint64(now.UnixNano()-ms*1_000_000) * 4096 / 1_000_000
	clock.Lock()
	clock.last = max(clock.last+1, uint64(ms)<<12|fraction)
	last := clock.last
	clock.Unlock()
	var made TimeUUID
	if _, err := rand.Read(made[8:]); err != nil {
		panic(err) // the system has no source of random numbers
	}
	binary.BigEndian.PutUint64(made[:8], last>>12<<16|7<<12|last&0xFFF)
	made[8] = made[8]&0x3F | 0x80
	return made
}

// ParseTimeUUID returns the TimeUUID of a text.
func ParseTimeUUID(text string) (TimeUUID, error) {
	var found TimeUUID
	decoded, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(decoded) != 16 || !isUUID(text) {
		return found, errors.New("needs a UUID of version 1 or 7")
	}
	copy(found[:], decoded)
	return found, found.check()
}

func (id TimeUUID) check() error {
	if version := id[6] >> 4; id[8]>>6 != 0b10 || (version != 1 && version != 7) {
		return errors.New("needs a UUID of version 1 or 7")
	}
	if id.clockUS() < earliestUS {
		return errors.New("needs a UUID whose clock is after 1999")
	}
	return nil
}

func (id TimeUUID) clockUS() int64 {
	if id[6]>>4 == 7 {
		return int64(binary.BigEndian.Uint64(id[:8])>>16) * 1_000
	}
	ticks := int64(binary.BigEndian.Uint16(id[6:8])&0x0FFF)<<48 |
		int64(binary.BigEndian.Uint16(id[4:6]))<<32 | int64(binary.BigEndian.Uint32(id[:4]))
	return ticks/10 - gregorianToUnixUS
}

// Time returns the clock.
func (id TimeUUID) Time() time.Time {
	return time.UnixMicro(id.clockUS()).UTC()
}

// Compare returns -1, 0 or 1, by the clocks and then the bytes.
func (id TimeUUID) Compare(other TimeUUID) int {
	if mine, theirs := id.clockUS(), other.clockUS(); mine != theirs {
		if mine < theirs {
			return -1
		}
		return 1
	}
	return strings.Compare(string(id[:]), string(other[:]))
}

// String returns the text of the UUID.
func (id TimeUUID) String() string {
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
