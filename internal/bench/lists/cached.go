// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cachedSize is the size in KiB of the objects in the watch cache.
const cachedSize = 10

// cached measures an API server with its default watch cache: it has converted each object once when
// it answers, but begins again after every write of a CRD's spec.
func (s *suite) cached(ctx context.Context) error {
	counts := s.counts(cachedSize)
	if len(counts) == 0 {
		return nil
	}
	count := slices.Max(counts)
	if err := s.fill(ctx, count, cachedSize); err != nil {
		return err
	}
	s.tell("listing %d objects of %d KB after the CustomResourceDefinition was written", count, cachedSize)
	var first []sample
	for _, k := range s.kinds {
		each := sample{subject: k.subject}
		for round := range fewestRounds {
			span, text, err := s.afterWrite(ctx, k, fmt.Sprintf("Round %d", round), count)
			if err != nil {
				return fmt.Errorf("%s: %w", k.subject, err)
			}
			each.spans, each.bytes = append(each.spans, span), len(text)
		}
		first = append(first, each)
	}
	s.add(fmt.Sprintf("LIST at the other version when the CRD was just written, %d KB x %d", cachedSize, count), count, first)
	further, err := s.take(ctx, count)
	if err != nil {
		return err
	}
	s.add(fmt.Sprintf("LIST from the watch cache at the other version, %d KB x %d", cachedSize, count), count, further)
	return nil
}

// afterWrite writes the CRD, and lists objects as soon as the API server uses what was written: it
// shows a new column of objects at the stored version.
func (s *suite) afterWrite(ctx context.Context, k *kind, column string, count int) (time.Duration, []byte, error) {
	base := k.crd.DeepCopy()
	k.crd.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: column, Type: "string", JSONPath: ".spec.image"}}
	if err := s.server.Client.Patch(ctx, k.crd, client.MergeFrom(base)); err != nil {
		return 0, nil, err
	}
	one := path(k.resource(storedVersion)) + "/task-0"
	var began time.Time
	for seen := false; !seen; {
		began = time.Now()
		var table bytes.Buffer
		if err := s.lister.get(ctx, one, "application/json;as=Table;v=v1;g=meta.k8s.io", &table); err != nil {
			return 0, nil, err
		}
		seen = bytes.Contains(table.Bytes(), []byte(column))
	}
	var text bytes.Buffer
	if _, err := s.lister.list(ctx, k.resource(otherVersion), count, io.Writer(&text)); err != nil {
		return 0, nil, err
	}
	span := time.Since(began)
	return span, text.Bytes(), check(text.Bytes(), count, k.start != nil)
}
