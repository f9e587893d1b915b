// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Converter asks a conversion webhook of any project.
type Converter struct{ connection connection }

const hintConverter = "the converter accepts connections but does not get to answering: check its log"

// NewConverter returns a Converter for a URL, over https, or over http to this machine. Without an authority,
// in PEM, the certificates of the system are trusted. The certificate must be valid for the server name, or for
// the host of the URL if that is empty. It sends nothing.
func NewConverter(address string, authority []byte, serverName string) (*Converter, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.User != nil {
		return nil, fmt.Errorf("%q is not the URL of a converter: write it as https://converter.example.com/convert", address)
	}
	if at.Scheme != "https" && (at.Scheme != "http" || !isThisMachine(at.Hostname())) {
		return nil, fmt.Errorf("%q must be an https URL: http is only for a converter on localhost", address)
	}
	trusted := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName}
	if authority != nil {
		trusted.RootCAs = x509.NewCertPool()
		if !trusted.RootCAs.AppendCertsFromPEM(authority) {
			return nil, errors.New("the certificate authority has no certificate in PEM")
		}
	}
	return &Converter{connection{
		base: at.Scheme + "://" + at.Host, path: at.RequestURI(), version: apiextensionsv1.SchemeGroupVersion.Version, hint: hintConverter, refusals: refusalStatuses,
		client: &http.Client{
			Transport:     &http.Transport{TLSClientConfig: trusted, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}}, nil
}

func isThisMachine(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Convert converts objects to a group and version. A converter that answers correctly that it does not convert
// them returns an error for which IsRefusal is true.
func (c *Converter) Convert(ctx context.Context, to string, objects [][]byte) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	converted, err := c.connection.review(ctx, to, objects)
	for i := range converted {
		if len(converted[i]) == 0 {
			converted[i] = []byte("null") // a RawExtension has no text for it
		}
	}
	return converted, err
}

// Close closes the connections.
func (c *Converter) Close() { c.connection.client.CloseIdleConnections() }

// IsRefusal reports whether a converter answered that it does not convert an object, or failed at that.
func IsRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// refusalStatuses are the HTTP statuses of converters that cannot read an object, or fail to convert it.
var refusalStatuses = []int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError}
