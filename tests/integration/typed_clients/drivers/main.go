// Program of a customer: sends with the generated Go client, receives with it, and prints what it saw as JSON.
// Arguments: URL of ingest, API key, port to receive on, signing secret; and a public key with a time
// and a signature of the body `{}`, id `msg_1`. Each event is expected twice.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"os"
	"sync"
	"time"

	"shopevents"
)

const uuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

func ptr[T any](value T) *T {
	return &value
}

func moment(text string) time.Time {
	found, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		log.Fatal(err)
	}
	return found
}

func order(amount, currency string) shopevents.Order {
	return shopevents.Order{
		Id:       shopevents.NewTimeUUID(),
		Price:    shopevents.Money{Amount: shopevents.Decimal(amount), Currency: currency},
		Count:    3,
		Serial:   9_007_199_254_740_993,
		State:    shopevents.StatePaid,
		PlacedAt: moment("2026-11-25T08:00:00.123457Z"),
		Tags:     []string{"a", "b\"\u2028\u00fc\U0001f600"},
	}
}

func everything(child *shopevents.Everything) shopevents.Everything {
	made := shopevents.Everything{
		Flag:                 true,
		Small:                math.MinInt32,
		Large:                math.MaxInt64,
		Single:               1.5,
		Double:               0.1,
		Raw:                  []byte{0, 255},
		Digest:               []byte("abcd"),
		Uuid:                 uuid,
		Date:                 "2026-11-25",
		TimestampMillis:      moment("2026-11-25T08:00:00.123Z"),
		TimestampMicros:      moment("2026-11-25T08:00:00.123457Z"),
		TimestampNanos:       moment("2026-11-25T08:00:00Z"),
		LocalTimestampMicros: moment("2026-11-25T08:00:00.000005Z"),
		TimeMicros:           "08:00:00.000001",
		TimeMillis:           "08:00:00",
		Prices:               map[string]shopevents.Decimal{"EUR": "12.50"},
		Either:               shopevents.Left{X: 1},
		Child:                child,
	}
	if child != nil {
		made.Either = shopevents.Right{X: 1}
	}
	return made
}

func refund() shopevents.Refund {
	return shopevents.Refund{
		RefundId:  uuid,
		Amount:    12.5,
		At:        moment("2026-11-25T08:00:00Z"),
		Kind:      ptr(shopevents.RefundKindPartOfIt),
		Count:     ptr(int64(10)),
		Lines:     []shopevents.RefundLinesItem{{Sku: ptr("s")}, {}},
		Extra:     map[string]int64{"a": 1},
		Free:      map[string]any{"x": []any{1.5, nil}},
		WeirdName: ptr(true),
	}
}

type receiver struct {
	mu         sync.Mutex
	verifier   *shopevents.WebhookVerifier
	received   map[string]map[string]string
	deliveries int
	tampered   int
	changed    chan struct{}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	delivery, err := r.verifier.Verify(request.Header, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	event, err := shopevents.DecodeEvent(delivery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := event.MarshalJSON()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.verifier.Verify(request.Header, append(body, ' ')); errors.Is(err, shopevents.ErrSignatureInvalid) {
		r.tampered++
	}
	r.received[delivery.EventID] = map[string]string{"type": delivery.EventType, "json": string(text)}
	r.deliveries++
	w.WriteHeader(http.StatusNoContent)
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *receiver) hasAll(ids []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if r.received[id] == nil {
			return false
		}
	}
	return r.deliveries >= 2*len(ids)
}

func send(url, key string, events []shopevents.TypedEvent) (accepted []string, refused []map[string]any) {
	settings := shopevents.DefaultSettings()
	settings.FirstBackoff = 100 * time.Millisecond
	settings.MaxWait = 30 * time.Second // one batch, which Flush sends
	sender := shopevents.NewBatchSender(url, key, "test", settings)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer sender.Close(ctx)
	var pending []*shopevents.PendingEvent
	for _, event := range events {
		queued, err := sender.Send(event)
		if err != nil {
			log.Fatal(err)
		}
		pending = append(pending, queued)
	}
	sender.Flush()
	for _, one := range pending {
		found, err := one.Wait(ctx)
		var refusal *shopevents.EventRefusedError
		switch {
		case err == nil:
			accepted = append(accepted, found.EventID)
		case errors.As(err, &refusal):
			refused = append(refused, map[string]any{
				"status": refusal.Status, "code": refusal.Code, "pointer": refusal.Pointer,
			})
		default:
			log.Fatal(err)
		}
	}
	return accepted, refused
}

// asymmetric verifies a signature by ed25519.
func asymmetric(body string) bool {
	verifier, err := shopevents.NewWebhookVerifier(os.Args[5])
	if err != nil {
		log.Fatal(err)
	}
	headers := http.Header{}
	headers.Set("webhook-id", "msg_1")
	headers.Set("webhook-timestamp", os.Args[6])
	headers.Set("webhook-signature", "v1,AAAA "+os.Args[7])
	_, err = verifier.Verify(headers, []byte(body))
	return err == nil
}

func main() {
	verifier, err := shopevents.NewWebhookVerifier(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	r := &receiver{verifier: verifier, received: map[string]map[string]string{}, changed: make(chan struct{}, 1)}
	go func() { log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[3], r)) }()
	var invalid *shopevents.InvalidValueError
	if err := order("1.234", "EUR").Validate(); !errors.As(err, &invalid) {
		log.Fatal("a value with too many digits is valid")
	}
	first, second := order("12.50", "EUR"), order("9999999.99", "EUR")
	child := everything(nil)
	accepted, refused := send(os.Args[1], os.Args[2], []shopevents.TypedEvent{
		first, second, order("1", "eur"), everything(&child), refund(),
	})
	for end := time.After(time.Minute); !r.hasAll(accepted); {
		select {
		case <-r.changed:
		case <-end:
			log.Fatalf("received %v, accepted %v", r.received, accepted)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	report, err := json.Marshal(map[string]any{
		"invalid": invalid.Pointer, "ids": []string{first.EventID(), second.EventID()}, "accepted": accepted,
		"asymmetric": []bool{asymmetric("{}"), asymmetric("[]")},
		"refused":    refused, "deliveries": r.deliveries, "tampered": r.tampered, "received": r.received,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(report))
}
