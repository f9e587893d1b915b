// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// What failed is told by the names of objects, and a converter answers the client that
// reaches its port. So it tells the manager only: the client that shows that it knows the
// private key of the serving certificate, which only the manager and the pod have. The
// key does not travel, and neither needs a token.

// FailuresPath answers a GET with Failures, to callers with a FailuresToken.
const FailuresPath = "/failures"

// ProbeAgent begins the User-Agent of the operator's own requests. What fails there
// is found out by the operator, and no failure in production.
const ProbeAgent = "conversion-operator-probe"

// failuresPurpose makes a token good for nothing else.
const failuresPurpose = "conversion-operator.io GET " + FailuresPath

const bearer = "Bearer "

// FailuresToken returns what shows that the caller knows the private key of the
// pod's serving certificate.
func FailuresToken(key crypto.PrivateKey) (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("deriving a token from the private key of the serving certificate: %w", err)
	}
	mac := hmac.New(sha256.New, der)
	mac.Write([]byte(failuresPurpose))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// Authorize lets requests pass as the manager's do, by the certificate that the pod serves.
func Authorize(request *http.Request, token string) {
	request.Header.Set("Authorization", bearer+token)
}

// ServeFailures lets a handler answer at FailuresPath to the client that knows the key of the
// certificate that is served. Before, it refuses everyone.
func (h *Handler) ServeFailures(certificate func() (*tls.Certificate, error)) {
	h.certificate = certificate
}

func (h *Handler) tellFailures(w http.ResponseWriter, r *http.Request) {
	if err := h.authorize(r); err != nil {
		write(w, http.StatusForbidden, textContent, []byte(err.Error()+"\n"))
		return
	}
	writeJSON(w, http.StatusOK, h.failures.read())
}

var errNotManager = errors.New("only the manager of conversion-operator may read which objects failed: read status.conversionFailures of the ConversionPolicy")

func (h *Handler) authorize(r *http.Request) error {
	if h.certificate == nil {
		return errNotManager
	}
	served, err := h.certificate()
	if err != nil || served == nil {
		return errNotManager
	}
	want, err := FailuresToken(served.PrivateKey)
	if err != nil {
		return errNotManager
	}
	got, found := strings.CutPrefix(r.Header.Get("Authorization"), bearer)
	if !found || !hmac.Equal([]byte(got), []byte(want)) {
		return errNotManager
	}
	return nil
}
