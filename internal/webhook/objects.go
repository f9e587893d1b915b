// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

var (
	errNotAnObject = errors.New("it is not a JSON object")
	errGone        = errors.New("the API server gave the call up before it was answered")
)

// convertObjects converts the list in front of the scanner, up to the first
// object that fails, and appends the results to the answer.
func (x *exchange) convertObjects(ctx context.Context, s *scanner) {
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
		case ctx.Err() != nil:
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
			x.failObject("", failureConvert, errNotAnObject)
		}
		return x.target.pair("")
	}
	out, outcome, err := x.converter.Answer(x.out, x.object, x.target.version)
	if err != nil {
		x.failObject(outcome.From, failureOf(err), err)
		return x.target.pair(outcome.From)
	}
	x.out = out
	s.pos += outcome.Read
	pair := x.target.pair(outcome.From)
	pair.kept(&outcome)
	return pair
}

func failureOf(err error) failure {
	if _, ok := errors.AsType[*conversion.OverflowError](err); ok {
		return failureOverflow
	}
	return failureConvert
}

// failObject gives the review up because of the object that is being converted,
// in the words that a person reads. The version that it comes from may be unknown.
func (x *exchange) failObject(from string, failure failure, cause error) {
	name, apiVersion := describe(x.object, x.count)
	if _, version, ok := strings.Cut(apiVersion, "/"); ok && from == "" {
		from = version
	}
	x.target.pair(from).failures[failure].Inc()
	versions := "to " + x.target.version
	if from != "" {
		versions = "from " + from + " " + versions
	}
	x.fail(failure, fmt.Errorf("%s cannot be converted %s: %w", name, versions, cause))
}

// describe says which object of a review is meant, by its name if it has one:
// what is applied on the server side may come without metadata. The text goes on
// behind the object.
func describe(text []byte, index int) (name, apiVersion string) {
	s := scanner{data: text}
	var partial struct {
		APIVersion string `json:"apiVersion"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	err := json.Unmarshal(s.value(), &partial)
	switch {
	case err != nil || partial.Metadata.Name == "":
		return fmt.Sprintf("object %d of the review", index), partial.APIVersion
	case partial.Metadata.Namespace == "":
		return partial.Metadata.Name, partial.APIVersion
	}
	return partial.Metadata.Namespace + "/" + partial.Metadata.Name, partial.APIVersion
}
