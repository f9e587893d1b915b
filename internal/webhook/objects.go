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

// convertObjects converts the list at the position of the scanner, up to the first object that
// fails, and appends the results to the answer.
func (x *exchange) convertObjects(s *scanner) {
	if !s.enter('[') {
		return
	}
	started := clock()
	last := started
	for s.next(']') {
		if x.converted > 0 {
			x.out = append(x.out, ',')
		}
		pair := x.convertObject(s)
		now := clock()
		switch {
		case s.err != nil:
		case x.abandoned():
			x.failObject("", failureCanceled, errAbandoned)
		default:
			x.converted++
			if !x.probe {
				pair.duration.observe(int64(now - last))
			}
		}
		last = now
		if s.err == nil && x.working && !x.yield() {
			x.failObject("", failureCanceled, errAbandoned)
		}
	}
	x.convertDuration = last - started
}

// convertObject converts the object at the position of the scanner, and returns its pair of
// versions.
func (x *exchange) convertObject(s *scanner) *pair {
	isObject := s.peek() == '{'
	x.object = s.data[s.pos:len(s.data):len(s.data)]
	if !isObject {
		if s.value(); s.err == nil {
			x.failObject("", failureWrongKind, errNotAnObject)
		}
		return x.target.pair("")
	}
	out, outcome, err := x.converter.Answer(x.out, x.object, x.target.version, x.stop)
	if x.refused != nil {
		s.fail(errStopped)
		return x.target.pair(outcome.From)
	}
	if errors.Is(err, conversion.ErrStopped) {
		err = x.whyStopped()
	}
	if err != nil {
		x.failObject(outcome.From, failureOf(err), err)
		return x.target.pair(outcome.From)
	}
	x.out = out
	s.pos += outcome.Read
	pair := x.target.pair(outcome.From)
	if !x.probe {
		pair.countPreserved(&outcome)
	}
	if outcome.Omitted != nil {
		x.recordOversized(outcome.Omitted)
	}
	return pair
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
func (x *exchange) failObject(from string, failure failure, cause error) {
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
	x.fail(failure, fmt.Errorf("%s cannot be converted %s: %w", object, versions, cause))
}

// objectOf returns the namespace and the name of the first object of a review, empty if it has none.
func objectOf(review []byte) (namespace, name string) {
	s := scanner{data: review}
	s.members(func(member string) {
		if member != "request" {
			s.value()
			return
		}
		s.members(func(member string) {
			if member != "objects" || s.peek() != '[' {
				s.value()
				return
			}
			whole, _ := describe(bytes.TrimLeft(s.data[s.pos+1:], " \t\r\n"))
			namespace, name, _ = strings.Cut(validName(whole), "/")
			s.fail(errStopped) // the rest may be long
		})
	})
	return namespace, name
}

// describe returns the name of an object of a review, which is empty if it has none: server-side
// apply may omit metadata. text continues after the object. The object may be malformed: describe
// returns what precedes the malformed part. API servers write the name before the spec.
func describe(text []byte) (name, apiVersion string) {
	var metadata struct{ name, namespace string }
	s := scanner{data: text}
	s.members(func(member string) {
		switch member {
		case "apiVersion":
			apiVersion = s.textOrSkip()
		case "metadata":
			s.members(func(member string) {
				switch member {
				case "name":
					metadata.name = s.textOrSkip()
				case "namespace":
					metadata.namespace = s.textOrSkip()
				default:
					s.value()
				}
			})
		default:
			s.value()
		}
	})
	switch {
	case metadata.name == "":
		return "", apiVersion
	case metadata.namespace == "":
		return metadata.name, apiVersion
	}
	return metadata.namespace + "/" + metadata.name, apiVersion
}
