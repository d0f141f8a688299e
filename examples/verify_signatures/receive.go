// Verify deliveries with the standard library of Go: PENSTOCK_SIGNING_SECRET=whsec_... go run receive.go
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

// isValid returns whether Penstock signed these exact bytes less than five minutes ago.
func isValid(key []byte, headers http.Header, body []byte) bool {
	id, sent := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if id == "" || err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + sent + "."))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, given := range strings.Split(headers.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), []byte(expected)) {
			return true
		}
	}
	return false
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("PENSTOCK_SIGNING_SECRET"), "whsec_"))
	if err != nil || len(key) == 0 {
		log.Fatal("PENSTOCK_SIGNING_SECRET: needs whsec_ and base64")
	}
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // verify the body before it is parsed
		if err != nil || !isValid(key, r.Header, body) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		// Handle each id once: a retry has the id of the first attempt.
		fmt.Println("received", r.Header.Get("webhook-id"))
		w.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "9000"), nil))
}
