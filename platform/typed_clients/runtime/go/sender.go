package PACKAGE

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxRetryAfter = 300 * time.Second // a longer Retry-After is cut to this
	maxAnswer     = 64 << 20
)

// ErrQueueFull says that the queue has no room, or that the sender is closed. Wait for earlier results, then send again.
var ErrQueueFull = errors.New("the queue of the sender takes no event")

// AcceptedEvent is an event that Penstock has stored: our id, and Penstock's id and position.
type AcceptedEvent struct {
	EventID   string
	MessageID string
	Position  string
}

// EventRefusedError says that Penstock refuses the event; sending it again does not help.
type EventRefusedError struct {
	EventID string
	Status  int
	Code    string
	Detail  string
	Pointer string // JSON pointer into the event
}

func (e *EventRefusedError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Detail)
}

// EventNotStoredError says that no attempt had a final response. The event may be stored; send it again with the same id.
type EventNotStoredError struct {
	EventID string
	Reason  string
}

func (e *EventNotStoredError) Error() string {
	return e.Reason
}

// TypedEvent is a value of a generated type that is sent as an event.
type TypedEvent interface {
	EventType() string
	EventID() string // "" if it has none and each gets a new one
	MarshalJSON() ([]byte, error)
}

// SenderSettings are the limits of a sender. A wait before a repeat is random, up to twice the last one, within the limits
// of backoff.
type SenderSettings struct {
	MaxBatchEvents int
	MaxBatchBytes  int
	MaxWait        time.Duration // for a batch to fill
	MaxQueueEvents int
	Attempts       int
	FirstBackoff   time.Duration
	MaxBackoff     time.Duration
	Timeout        time.Duration     // of one attempt
	Headers        map[string]string // added to each request
}

// DefaultSettings returns the defaults.
func DefaultSettings() SenderSettings {
	return SenderSettings{
		MaxBatchEvents: 500, MaxBatchBytes: 512 * 1024, MaxWait: 50 * time.Millisecond, MaxQueueEvents: 10_000,
		Attempts: 8, FirstBackoff: 500 * time.Millisecond, MaxBackoff: 30 * time.Second, Timeout: 30 * time.Second,
	}
}

// PendingEvent is a queued event. Its result comes later.
type PendingEvent struct {
	id       string
	text     []byte
	done     chan struct{}
	accepted AcceptedEvent
	err      error
}

// Wait returns the result: the accepted event, EventRefusedError, EventNotStoredError, or the error of the context.
func (p *PendingEvent) Wait(ctx context.Context) (AcceptedEvent, error) {
	select {
	case <-p.done:
		return p.accepted, p.err
	case <-ctx.Done():
		return AcceptedEvent{}, ctx.Err()
	}
}

// BatchSender sends events in batches: one result for each event, retries with backoff, and the same id for each repeat of
// an event. One batch is sent at a time, so that events stay in order. The queue is bounded: a full one refuses events.
type BatchSender struct {
	url, key, source string
	settings         SenderSettings
	client           *http.Client
	mu               sync.Mutex
	queue            []*PendingEvent
	unsettled        int
	flushing         int
	isClosing        bool
	settled          *sync.Cond
	wake             chan struct{} // a signal to look at the queue
	stop             chan struct{} // closed when waits must end
	finished         chan struct{}
}

// NewBatchSender takes the address of ingest, the API key of a source, and the `source` of its CloudEvents.
func NewBatchSender(url, key, source string, settings SenderSettings) *BatchSender {
	s := &BatchSender{
		url: strings.TrimRight(url, "/") + "/v1/events", key: key, source: source, settings: settings,
		client: &http.Client{Timeout: settings.Timeout},
		wake:   make(chan struct{}, 1), stop: make(chan struct{}), finished: make(chan struct{}),
	}
	s.settled = sync.NewCond(&s.mu)
	go s.run()
	return s
}

// Send queues an event under its own id, or a new one if it has none. The error is InvalidValueError or ErrQueueFull.
func (s *BatchSender) Send(event TypedEvent) (*PendingEvent, error) {
	id := event.EventID()
	if id == "" {
		id = NewTimeUUID().String()
	}
	return s.SendAs(event, id)
}

// SendAs queues an event under an id.
func (s *BatchSender) SendAs(event TypedEvent, id string) (*PendingEvent, error) {
	data, err := event.MarshalJSON()
	if err != nil {
		return nil, err
	}
	text, err := marshal(map[string]any{
		"specversion": "1.0", "id": id, "source": s.source, "type": event.EventType(),
		"time": time.Now().UTC().Format(time.RFC3339Nano), "data": json.RawMessage(data),
	})
	if err != nil {
		return nil, err
	}
	pending := &PendingEvent{id: id, text: text, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosing {
		return nil, fmt.Errorf("%w: it is closed", ErrQueueFull)
	}
	if s.unsettled >= s.settings.MaxQueueEvents {
		return nil, fmt.Errorf("%w: %d events wait for their results", ErrQueueFull, s.unsettled)
	}
	s.queue = append(s.queue, pending)
	s.unsettled++
	s.signal()
	return pending, nil
}

// Flush sends what is queued now, and waits until each event has its result.
func (s *BatchSender) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushing++
	s.signal()
	for s.unsettled > 0 {
		s.settled.Wait()
	}
	s.flushing--
}

// Close sends what is queued, then ends. Events without a result by the end of the context get EventNotStoredError.
func (s *BatchSender) Close(ctx context.Context) {
	s.mu.Lock()
	isFirst := !s.isClosing
	s.isClosing = true
	s.signal()
	s.mu.Unlock()
	select {
	case <-s.finished:
	case <-ctx.Done():
		if isFirst {
			close(s.stop)
		}
		<-s.finished
	}
}

func (s *BatchSender) signal() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

func (s *BatchSender) run() {
	defer close(s.finished)
	for {
		batch := s.nextBatch()
		if len(batch) == 0 {
			return
		}
		s.deliver(batch)
	}
}

// nextBatch waits for a full batch, or for what is queued after the longest wait. It is empty when the sender ends.
func (s *BatchSender) nextBatch() []*PendingEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.isClosing {
		s.waitFor(nil)
	}
	timer := time.NewTimer(s.settings.MaxWait)
	defer timer.Stop()
	for isOver := false; !isOver && !s.isDue(); {
		isOver = s.waitFor(timer.C)
	}
	count, size := 0, 0
	for _, one := range s.queue {
		size += len(one.text) + 1
		if count == s.settings.MaxBatchEvents || (count > 0 && size > s.settings.MaxBatchBytes) {
			break
		}
		count++
	}
	batch := s.queue[:count:count]
	s.queue = s.queue[count:]
	return batch
}

func (s *BatchSender) isDue() bool {
	return len(s.queue) >= s.settings.MaxBatchEvents || s.isClosing || s.flushing > 0
}

// waitFor waits for a signal or the timer, without the lock; it returns true for the timer.
func (s *BatchSender) waitFor(timer <-chan time.Time) bool {
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-s.wake:
		return false
	case <-timer:
		return true
	}
}

// deliver sends a batch until each of its events has a result; only those without one are repeated.
func (s *BatchSender) deliver(batch []*PendingEvent) {
	reason, backoff := "", s.settings.FirstBackoff
	for attempt := 1; len(batch) > 0; attempt++ {
		results, retryAfter := s.post(batch)
		var again []*PendingEvent
		for place, one := range batch {
			result := results[place]
			if !isRetried(result.Status) {
				s.settle(one, result)
				continue
			}
			again = append(again, one)
			reason = fmt.Sprintf("%d: %s", result.Status, result.Detail)
			if result.Status == 0 {
				reason = "no response: " + result.Detail
			}
		}
		batch = again
		jittered := time.Duration(float64(backoff) * (0.5 + rand.Float64()/2))
		if len(batch) == 0 || attempt >= s.settings.Attempts || !s.pause(max(retryAfter, jittered)) {
			break
		}
		backoff = min(2*backoff, s.settings.MaxBackoff)
	}
	for _, one := range batch {
		one.err = &EventNotStoredError{EventID: one.id, Reason: reason}
		s.finish(one)
	}
}

// pause waits before a repeat; it returns false if the sender must end.
func (s *BatchSender) pause(wait time.Duration) bool {
	select {
	case <-time.After(wait):
		return true
	case <-s.stop:
		return false
	}
}

type eventResult struct {
	Status   int    `json:"status"`
	ID       string `json:"id"`
	Position string `json:"position"`
	Code     string `json:"code"`
	Detail   string `json:"detail"`
	Pointer  string `json:"pointer"`
}

// post sends one request; it returns a result for each event, with the status 0 if there was no answer.
func (s *BatchSender) post(batch []*PendingEvent) ([]eventResult, time.Duration) {
	status, retryAfter, body, err := s.exchange(batch)
	var answer struct {
		eventResult
		Items []eventResult `json:"items"`
	}
	if err == nil {
		if err = json.Unmarshal(body, &answer); err != nil && status/100 != 2 {
			err = nil // the status says enough; a success without JSON is of a proxy, or cut off
		}
	}
	if err == nil && len(answer.Items) == len(batch) {
		return answer.Items, retryAfter
	}
	all := answer.eventResult
	all.Status = status
	if err != nil {
		all = eventResult{Detail: err.Error()}
	}
	results := make([]eventResult, len(batch))
	for place := range results {
		results[place] = all
	}
	return results, retryAfter
}

func (s *BatchSender) exchange(batch []*PendingEvent) (int, time.Duration, []byte, error) {
	texts := make([][]byte, len(batch))
	for place, one := range batch {
		texts[place] = one.text
	}
	sent := append(append([]byte("["), bytes.Join(texts, []byte(","))...), ']')
	request, err := http.NewRequest(http.MethodPost, s.url, bytes.NewReader(sent))
	if err != nil {
		return 0, 0, nil, err
	}
	for name, value := range s.settings.Headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Content-Type", "application/cloudevents-batch+json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, 0, nil, err
	}
	defer response.Body.Close()
	var wait time.Duration
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31); err == nil {
		wait = min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, wait, body, err
}

func isRetried(status int) bool {
	return status == 0 || status == 408 || status == 425 || status == 429 || status >= 500
}

func (s *BatchSender) settle(one *PendingEvent, result eventResult) {
	if result.Status == http.StatusAccepted {
		one.accepted = AcceptedEvent{EventID: one.id, MessageID: result.ID, Position: result.Position}
	} else {
		one.err = &EventRefusedError{one.id, result.Status, result.Code, result.Detail, result.Pointer}
	}
	s.finish(one)
}

func (s *BatchSender) finish(one *PendingEvent) {
	close(one.done)
	s.mu.Lock()
	s.unsettled--
	s.settled.Broadcast()
	s.mu.Unlock()
}
