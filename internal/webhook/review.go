// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"strings"
)

// The kind of reviews and its versions, which have the same fields. They are constants of this
// package so that converter pods do not link the API of CustomResourceDefinitions.
const (
	reviewKind    = "ConversionReview"
	reviewV1      = "apiextensions.k8s.io/v1"
	reviewV1beta1 = "apiextensions.k8s.io/v1beta1"
)

// members is a set of the members of a review that the server reads.
type members uint8

const (
	memberKind members = 1 << iota
	memberAPIVersion
	memberRequest
	memberUID
	memberDesired
	memberObjects

	// beforeObjects are the members that must be known to convert objects while the body is parsed.
	beforeObjects = memberKind | memberAPIVersion | memberUID | memberDesired
)

// review is the request of a ConversionReview, as far as it is parsed. Its byte slices share the
// memory of the body where possible.
type review struct {
	found      members
	apiVersion []byte
	kind       []byte
	// uid must be repeated in the answer.
	uid []byte
	// desired is the group and version to convert to.
	desired []byte
	// objects and objectsEnd delimit the list of objects in the body, if the list precedes a member
	// that is needed to convert it. Such objects may have different versions.
	objects, objectsEnd int
}

// read parses the body once. API servers write the members of a review in the order in which they
// are needed, so objects are converted while they are parsed. Objects that precede a needed member
// are converted at the end. read returns an error if the body is not a usable review.
func (x *exchange) read() error {
	s := &x.scanner
	if s.enter('{') {
		for s.next('}') {
			x.readMember(s)
		}
	}
	s.end()
	if s.err != nil || x.headWritten {
		return s.err
	}
	if err := x.review.check(); err != nil {
		return err
	}
	return x.convertDeferred()
}

func (x *exchange) readMember(s *scanner) {
	switch name := s.name(); string(name) {
	case "kind":
		x.review.kind = x.readString(memberKind, "kind")
	case "apiVersion":
		x.review.apiVersion = x.readString(memberAPIVersion, "apiVersion")
	case "request":
		x.markFound(memberRequest, "request")
		x.readRequest(s)
		s.within("request")
	default:
		s.value()
	}
}

func (x *exchange) readRequest(s *scanner) {
	if s.err != nil || !s.enter('{') {
		return
	}
	for s.next('}') {
		switch name := s.name(); string(name) {
		case "uid":
			x.review.uid = x.readString(memberUID, "uid")
		case "desiredAPIVersion":
			x.review.desired = x.readString(memberDesired, "desiredAPIVersion")
		case "objects":
			x.markFound(memberObjects, "objects")
			x.readObjects(s)
			s.within("objects")
		default:
			s.value()
		}
	}
}

// readObjects converts the objects, or records where they are.
func (x *exchange) readObjects(s *scanner) {
	switch {
	case s.err != nil:
	case x.review.found&beforeObjects != beforeObjects || x.review.check() != nil:
		s.peek()
		x.review.objects = s.pos
		s.value()
		x.review.objectsEnd = s.pos
	case x.beginAnswer():
		x.convertObjects(s)
	}
}

// convertDeferred converts the objects that readObjects recorded.
func (x *exchange) convertDeferred() error {
	if !x.beginAnswer() || x.review.objectsEnd == 0 {
		return nil
	}
	s := &x.scanner
	*s = scanner{data: s.data[:x.review.objectsEnd], pos: x.review.objects}
	x.convertObjects(s)
	s.end()
	s.within("objects")
	s.within("request")
	return s.err
}

// readString reads a member that is a string.
func (x *exchange) readString(member members, name string) []byte {
	x.markFound(member, name)
	if x.scanner.err != nil {
		return nil
	}
	text := x.scanner.text()
	if len(text) > maxText {
		x.scanner.fail(fmt.Errorf("it is longer than %d bytes", maxText))
	}
	x.scanner.within(name)
	return text
}

// markFound rejects a member that occurs twice: programs differ in which of the two they use.
func (x *exchange) markFound(member members, name string) {
	if x.review.found&member != 0 {
		x.scanner.fail(fmt.Errorf("the member %q comes twice, the second time before byte %d", name, x.scanner.pos))
	}
	x.review.found |= member
}

// check returns an error unless the body is a review that can be answered: in a known version, and
// with a uid.
func (r *review) check() error {
	if string(r.kind) != reviewKind {
		return fmt.Errorf("kind is %q, not %q", r.kind, reviewKind)
	}
	if r.version() == "" {
		return fmt.Errorf("apiVersion is %q, but reviews are answered in %s and %s only: correct conversionReviewVersions of the CustomResourceDefinition",
			r.apiVersion, reviewV1, reviewV1beta1)
	}
	if len(r.uid) == 0 {
		return errors.New("request.uid is missing")
	}
	return nil
}

// version returns the group and version of the review, which its answer must have too.
func (r *review) version() string {
	for _, version := range [...]string{reviewV1, reviewV1beta1} {
		if string(r.apiVersion) == version {
			return version
		}
	}
	return ""
}

// target returns the version to convert to. Its group must be that of the converter.
func (r *review) target(group string) (string, error) {
	desired := string(r.desired)
	if desired == "" {
		return "", errors.New("request.desiredAPIVersion is missing")
	}
	desiredGroup, version, _ := strings.Cut(desired, "/")
	if desiredGroup != group {
		return "", fmt.Errorf("this converter serves %s, but the request is for %s: the CustomResourceDefinition refers to the wrong webhook", group, desired)
	}
	if version == "" || strings.Contains(version, "/") {
		return "", fmt.Errorf("request.desiredAPIVersion is %q, not %s/<version>", desired, group)
	}
	return version, nil
}
