// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages bounds the memory of lists. The metadata of one object may have some hundred bytes,
// or more than a MiB, so a page is bounded by what arrives, and not by its number of objects.
package pages

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// first is the number of objects in the first page: nothing is known about them yet.
	first = 10
	// maxBytes bounds a page of several objects. It has room for some hundred objects whose
	// metadata is as usual.
	maxBytes = 1 << 20
	// growth is by how much the next page may be larger, if it probably fits.
	growth = 4
)

// Size is the size of the next page of a list. The zero value is that of the first page.
type Size struct{ objects int64 }

// Read calls list to request a page of at most a number of objects, with a context that bounds the
// answer. If the page is too large, Read calls list again for a smaller one. The client must be one
// for which Bound was called. A page of one object may have any size.
func (s *Size) Read(ctx context.Context, most int64, list func(ctx context.Context, limit int64) error) error {
	if s.objects == 0 {
		s.objects = first
	}
	for {
		limit := min(s.objects, most)
		page := &answer{max: maxBytes}
		if limit == 1 {
			page.max = math.MaxInt64 - 1
		}
		err := list(context.WithValue(ctx, answerKey{}, page), limit)
		switch {
		case errors.Is(err, errTooLarge):
			s.objects = limit / 2
			continue
		case err == nil && page.bytes <= maxBytes/growth:
			s.objects = min(limit, math.MaxInt64/growth) * growth
		}
		return err
	}
}

// List is Read for a page of options, in which it sets the limit. It replaces an expired token: the pages are then
// of different points in time.
func (s *Size) List(ctx context.Context, most int64, options *metav1.ListOptions, list func(context.Context, metav1.ListOptions) error) error {
	for {
		err := s.Read(ctx, most, func(ctx context.Context, limit int64) error {
			options.Limit = limit
			return list(ctx, *options)
		})
		renewed := renewedToken(err)
		if renewed == "" || renewed == options.Continue {
			return err
		}
		options.Continue = renewed
	}
}

// renewedToken returns the continue token that an API server offers instead of an expired one, or an
// empty string. It continues at the same object in a newer state.
func renewedToken(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// errTooLarge ends the request of a page that is larger than allowed.
var errTooLarge = errors.New("the page is larger than allowed")

// answer is the answer to one request of a page.
type answer struct{ max, bytes int64 }

type answerKey struct{}

// Bound lets clients of a configuration bound the pages that Read requests. It does not change other
// requests.
func Bound(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
}

type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper. It reads a page before it returns: client-go would log an
// error of the body, and ask users to try again.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	page, _ := request.Context().Value(answerKey{}).(*answer)
	if page == nil {
		return b.RoundTripper.RoundTrip(request)
	}
	// A configuration may be bounded twice.
	inner := request.WithContext(context.WithValue(request.Context(), answerKey{}, nil))
	response, err := b.RoundTripper.RoundTrip(inner)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, page.max+1))
	if page.bytes = int64(len(text)); page.bytes > page.max {
		err = errTooLarge
	}
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, nil
}
