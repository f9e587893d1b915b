// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

var (
	errNotAnObject = errors.New("it is not a JSON object")
	errAbandoned   = errors.New("the API server gave up on the call before it was answered")
	errTooMuch     = errors.New("its conversion takes more memory than the converter pod has: shorten its lists and maps, or raise the memory limit of converter pods")
)

// whyStopped is why mustStop stopped a conversion.
func (x *exchange) whyStopped() error {
	if x.tooMuch {
		return errTooMuch
	}
	return errAbandoned
}

// convertObjects converts the list at a position, up to the first object that fails, appends the results to the answer, and
// returns the end of the list.
func (x *exchange) convertObjects(pos int) (end int, err error) {
	started := clock()
	last := started
	end, err = tree.Walk(x.in, pos, func(_ string, pos int) (int, error) {
		if x.converted > 0 {
			x.out = append(x.out, ',')
		}
		pair, end, err := x.convertObject(pos)
		now := clock()
		switch {
		case err != nil:
		case x.abandoned():
			err = x.failObject("", failureCanceled, errAbandoned)
		default:
			x.converted++
			if !x.probe {
				pair.duration.observe(int64(now - last))
			}
		}
		last = now
		if err == nil && x.working && !x.yield() {
			err = x.failObject("", failureCanceled, errAbandoned)
		}
		return end, err
	})
	x.convertDuration = last - started
	return end, err
}

// convertObject converts the object at a position, and returns its pair of versions and its end.
func (x *exchange) convertObject(pos int) (of *pair, end int, err error) {
	x.object = slices.Clip(x.in[pos:])
	if !bytes.HasPrefix(x.object, []byte("{")) {
		if end, err = tree.Skip(x.in, pos); err == nil {
			err = x.failObject("", failureWrongKind, errNotAnObject)
		}
		return x.target.pair(""), end, err
	}
	out, outcome, err := x.converter.Answer(x.out, x.object, x.target.version, x.stop)
	of = x.target.pair(outcome.From)
	switch {
	case x.refused != nil:
		return of, pos, errStopped
	case errors.Is(err, conversion.ErrStopped):
		err = x.whyStopped()
	}
	if err != nil {
		return of, pos, x.failObject(outcome.From, failureOf(err), err)
	}
	x.out = out
	if !x.probe {
		of.countPreserved(&outcome)
	}
	if outcome.Omitted != nil {
		x.recordOversized(outcome.Omitted)
	}
	return of, pos + outcome.Read, nil
}

// failureOf is the failure of an object by the cause that the converter reported.
func failureOf(err error) failure {
	if errors.Is(err, errAbandoned) {
		return failureCanceled
	}
	if errors.Is(err, errTooMuch) {
		return failureOverBudget
	}
	if known := slices.Index(causeOf[:], conversion.CauseOf(err)); known >= 0 {
		return failure(known)
	}
	return failureConvert
}

// failObject fails the review because of the current object, with a message for users. from may be
// empty if the version is unknown.
func (x *exchange) failObject(from string, failure failure, cause error) error {
	object, apiVersion := describe(x.object)
	if _, version, ok := strings.Cut(apiVersion, "/"); ok && from == "" {
		from = version
	}
	pair := x.target.pair(from)
	pair.failures[failure].Add(1)
	x.recordFailure(pair, failure, object, cause)
	versions := "to " + x.target.version
	if from != "" {
		versions = "from " + from + " " + versions
	}
	if object == "" {
		object = fmt.Sprintf("object %d of the review", x.converted)
	}
	return x.fail(failure, fmt.Errorf("%s cannot be converted %s: %w", object, versions, cause))
}

// objectOf returns the namespace and the name of the first object of a review, empty if it has none.
func objectOf(review []byte) (namespace, name string) {
	_, _ = tree.Walk(review, 0, func(member string, pos int) (int, error) {
		if member != "request" {
			return tree.Skip(review, pos)
		}
		return tree.Walk(review, pos, func(member string, pos int) (int, error) {
			if member != "objects" {
				return tree.Skip(review, pos)
			}
			return tree.Walk(review, pos, func(_ string, pos int) (int, error) {
				whole, _ := describe(review[pos:])
				namespace, name, _ = strings.Cut(validName(whole), "/")
				return pos, errStopped // the rest may be long
			})
		})
	})
	return namespace, name
}

// describe returns the name of an object of a review, which is empty if it has none: server-side
// apply may omit metadata. text continues after the object. The object may be malformed: describe
// returns what precedes the malformed part. API servers write the name before the spec.
func describe(text []byte) (name, apiVersion string) {
	var namespace string
	_, _ = tree.Walk(text, 0, func(member string, pos int) (int, error) {
		switch member {
		case "apiVersion":
			return copyText(text, pos, &apiVersion)
		case "metadata":
			return tree.Walk(text, pos, func(member string, pos int) (int, error) {
				switch member {
				case "name":
					return copyText(text, pos, &name)
				case "namespace":
					return copyText(text, pos, &namespace)
				}
				return tree.Skip(text, pos)
			})
		}
		return tree.Skip(text, pos)
	})
	if name == "" || namespace == "" {
		return name, apiVersion
	}
	return namespace + "/" + name, apiVersion
}
