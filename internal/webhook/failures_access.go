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
	"fmt"
	"net/http"
	"strings"
)

// Failures name objects, and any client in the cluster can connect to a converter. So a pod shows
// them only to clients that prove to know the private key of its serving certificate, which only
// the manager and the pod have. The key itself is not sent, and no other token is needed.

// FailuresPath answers a GET with Failures, to callers that have a token of FailuresToken.
const FailuresPath = "/failures"

// FailuresCRD is the query parameter that limits an answer at FailuresPath to one
// CustomResourceDefinition, by its name.
const FailuresCRD = "crd"

// ProbeAgent is the prefix of the User-Agent of the operator's own requests. Their failures are not
// failures in production.
const ProbeAgent = "conversion-operator-probe"

// failuresPurpose makes a token useless for other purposes.
const failuresPurpose = "conversion-operator.io GET " + FailuresPath

const bearer = "Bearer "

// FailuresToken returns a token which proves that the caller knows the private key of the serving
// certificate of the pod.
func FailuresToken(key crypto.PrivateKey) (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("deriving a token from the private key of the serving certificate: %w", err)
	}
	mac := hmac.New(sha256.New, der)
	mac.Write([]byte(failuresPurpose))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// Authorize adds the token to a request.
func Authorize(request *http.Request, token string) {
	request.Header.Set("Authorization", bearer+token)
}

// ServeFailures makes the handler answer at FailuresPath to clients that know the private key of
// the certificate. Until then, it rejects all clients.
func (h *Handler) ServeFailures(certificate func() *tls.Certificate) { h.certificate = certificate }

func (h *Handler) listFailures(w http.ResponseWriter, r *http.Request) {
	if !h.isManager(r) {
		write(w, http.StatusForbidden, textContent, []byte(notManager))
		return
	}
	writeJSON(w, http.StatusOK, h.readFailures(r.URL.Query().Get(FailuresCRD)))
}

const notManager = "only the manager of conversion-operator may read which objects failed: read status.conversionFailures of the ConversionPolicy\n"

func (h *Handler) isManager(r *http.Request) bool {
	if h.certificate == nil {
		return false
	}
	want, err := FailuresToken(h.certificate().PrivateKey)
	got, found := strings.CutPrefix(r.Header.Get("Authorization"), bearer)
	return err == nil && found && hmac.Equal([]byte(got), []byte(want))
}
