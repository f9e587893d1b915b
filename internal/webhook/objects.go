// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

var (
	errNotAnObject = errors.New("it is not a JSON object")
	errGone        = errors.New("the API server gave the call up before it was answered")
)

// convertObjects converts the list in front of the scanner, up to the first
// object that fails, and appends the results to the answer.
func (x *exchange) convertObjects(s *scanner) {
	if !s.enter('[') {
		return
	}
	started := clock()
	last := started
	for s.next(']') {
		if x.count > 0 {
			x.out = append(x.out, ',')
		}
		pair := x.convertObject(s)
		now := clock()
		switch {
		case s.err != nil:
		case x.gone():
			x.failObject("", failureCanceled, errGone)
		default:
			pair.duration.Observe((now - last).Seconds())
			x.count++
		}
		last = now
	}
	x.converting = last - started
}

// convertObject converts the object in front of the scanner, and returns the
// pair of versions that it belongs to.
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
	if errors.Is(err, conversion.ErrStopped) {
		err = errGone
	}
	if err != nil {
		x.failObject(outcome.From, failureOf(err), err)
		return x.target.pair(outcome.From)
	}
	x.out = out
	s.pos += outcome.Read
	pair := x.target.pair(outcome.From)
	pair.kept(&outcome)
	if outcome.Omitted != nil {
		x.rememberOversized(outcome.Omitted)
	}
	return pair
}

// ofCauses are the failures of objects by what the converter said of them.
var ofCauses = map[conversion.Cause]failure{
	conversion.CauseInvalidJSON:         failureInvalidJSON,
	conversion.CauseWrongKind:           failureWrongKind,
	conversion.CauseUnknownVersion:      failureUnknownVersion,
	conversion.CauseAnnotationsTooLarge: failureOverflow,
	conversion.CauseTruncated:           failureTruncated,
	conversion.CauseOverBudget:          failureOverBudget,
}

func failureOf(err error) failure {
	if known, found := ofCauses[conversion.CauseOf(err)]; found {
		return known
	}
	if errors.Is(err, errGone) {
		return failureCanceled
	}
	return failureConvert
}

// failObject gives the review up because of the object that is being converted,
// in the words that a person reads. The version that it comes from may be unknown.
func (x *exchange) failObject(from string, failure failure, cause error) {
	object, apiVersion := describe(x.object)
	if _, version, ok := strings.Cut(apiVersion, "/"); ok && from == "" {
		from = version
	}
	pair := x.target.pair(from)
	pair.failures[failure].Inc()
	x.remember(pair, failure, object, cause)
	versions := "to " + x.target.version
	if from != "" {
		versions = "from " + from + " " + versions
	}
	if object == "" {
		object = fmt.Sprintf("object %d of the review", x.count)
	}
	x.fail(failure, fmt.Errorf("%s cannot be converted %s: %w", object, versions, cause))
}

// describe names an object of a review, if it has a name: what is applied on the server
// side may come without metadata. The text goes on behind the object, which may be the
// cause of the failure: what stands in front of that is told all the same, and API
// servers write names in front of the spec.
func describe(text []byte) (name, apiVersion string) {
	var metadata struct{ name, namespace string }
	s := scanner{data: text, anyDepth: true}
	s.members(func(member string) {
		switch member {
		case "apiVersion":
			apiVersion = s.textOrElse()
		case "metadata":
			s.members(func(member string) {
				switch member {
				case "name":
					metadata.name = s.textOrElse()
				case "namespace":
					metadata.namespace = s.textOrElse()
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

// exampleEvery is how often one of many failures is shown to everyone: often
// enough to see what goes wrong, and seldom enough for a kind with a million
// broken objects, which an API server may ask for again and again.
const exampleEvery = time.Minute

// examples chooses them.
type examples struct{ next atomic.Int64 }

// level is the verbosity of the log at which something that happened now is
// worth a line: 0 for the first in a while, 1 for all others.
func (e *examples) level(now time.Time) int {
	next := e.next.Load()
	if now.UnixNano() >= next && e.next.CompareAndSwap(next, now.Add(exampleEvery).UnixNano()) {
		return 0
	}
	return 1
}
