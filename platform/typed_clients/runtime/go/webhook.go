package PACKAGE

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const toleranceS = 300 // between the receiver's clock and the signed time

// ErrSignatureInvalid says that a request is not a delivery by the holder of the secret, or is too old. Return 401.
var ErrSignatureInvalid = errors.New("the signature is not valid")

// VerifiedDelivery is a delivery whose signature is valid.
type VerifiedDelivery struct {
	ID        string // the same for each attempt of Penstock to deliver it
	EventID   string // the same even if the sender repeated the event; "" without CloudEvents attributes. Handle each once.
	EventType string // of the CloudEvent; "" if there is none
	SentAt    time.Time
	Body      []byte
}

// WebhookVerifier verifies requests by Standard Webhooks signatures (standardwebhooks.com, specification 1.0).
type WebhookVerifier struct {
	checks []func(signed []byte, signature string) bool
}

// NewWebhookVerifier takes one secret, or several during a rotation: whsec_ (v1), or a public key whpk_ (v1a).
func NewWebhookVerifier(secrets ...string) (*WebhookVerifier, error) {
	if len(secrets) == 0 {
		return nil, errors.New("needs at least one secret")
	}
	verifier := &WebhookVerifier{}
	for _, secret := range secrets {
		check, err := checkOf(secret)
		if err != nil {
			return nil, err
		}
		verifier.checks = append(verifier.checks, check)
	}
	return verifier, nil
}

// Verify returns the delivery; body is the exact bytes of the request. The error wraps ErrSignatureInvalid.
func (v *WebhookVerifier) Verify(headers http.Header, body []byte) (VerifiedDelivery, error) {
	return v.verifyAt(headers, body, time.Now())
}

func (v *WebhookVerifier) verifyAt(headers http.Header, body []byte, now time.Time) (VerifiedDelivery, error) {
	id, sent := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	signatures := headers.Get("webhook-signature")
	seconds, err := strconv.ParseInt(sent, 10, 48)
	if id == "" || signatures == "" || err != nil {
		return VerifiedDelivery{}, fmt.Errorf(
			"%w: needs the headers webhook-id, webhook-timestamp and webhook-signature", ErrSignatureInvalid)
	}
	if early := now.Unix() - seconds; early > toleranceS || early < -toleranceS {
		return VerifiedDelivery{}, fmt.Errorf(
			"%w: needs a time within %d seconds of this clock", ErrSignatureInvalid, toleranceS)
	}
	signed := append([]byte(id+"."+sent+"."), body...)
	for _, signature := range strings.Split(signatures, " ") {
		for _, check := range v.checks {
			if check(signed, signature) {
				return VerifiedDelivery{
					ID: id, EventID: headers.Get("ce-id"), EventType: headers.Get("ce-type"),
					SentAt: time.Unix(seconds, 0).UTC(), Body: body,
				}, nil
			}
		}
	}
	return VerifiedDelivery{}, fmt.Errorf("%w: needs a signature by one of the secrets", ErrSignatureInvalid)
}

func checkOf(secret string) (func([]byte, string) bool, error) {
	prefix, encoded, _ := strings.Cut(secret, "_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		return nil, errors.New("needs base64 after the prefix of the secret")
	case prefix == "whsec" && len(key) > 0:
		return func(signed []byte, signature string) bool {
			mac := hmac.New(sha256.New, key)
			mac.Write(signed)
			given, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
			return err == nil && strings.HasPrefix(signature, "v1,") && hmac.Equal(mac.Sum(nil), given)
		}, nil
	case prefix == "whpk" && len(key) == ed25519.PublicKeySize:
		return func(signed []byte, signature string) bool {
			given, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1a,"))
			return err == nil && strings.HasPrefix(signature, "v1a,") && ed25519.Verify(key, signed, given)
		}, nil
	}
	return nil, errors.New("needs a secret with the prefix whsec_, or a public key of 32 bytes with the prefix whpk_")
}
