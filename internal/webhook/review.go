// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"strings"
)

// The kind of reviews, and its versions. Both have the same shape. They are spelled
// out so that a converter pod does not link the API of definitions.
const (
	reviewKind    = "ConversionReview"
	reviewV1      = "apiextensions.k8s.io/v1"
	reviewV1beta1 = "apiextensions.k8s.io/v1beta1"
)

// members is a set of those members of a review that the server reads.
type members uint8

const (
	memberKind members = 1 << iota
	memberAPIVersion
	memberRequest
	memberUID
	memberDesired
	memberObjects

	// beforeObjects must be known for objects to be converted while they are read.
	beforeObjects = memberKind | memberAPIVersion | memberUID | memberDesired
)

// review is the request of a ConversionReview, as far as it was read. Its texts
// are parts of the body where they can be.
type review struct {
	found      members
	apiVersion []byte
	kind       []byte
	// uid ties the answer to the request.
	uid []byte
	// desired is the group and version to convert to.
	desired []byte
	// objects is where the list of objects begins and ends in the body, if it came
	// before something that must be known to convert them. They may be at
	// different versions, and are valid only as far as their brackets balance.
	objects, objectsEnd int
}

// read walks through the body once. An API server writes the members of a review
// in the order in which they are needed, and then every object is converted
// where it is found. Those that came too early are converted in the end. The
// error is that of a body that is no review at all, or no usable one.
func (x *exchange) read() error {
	s := &x.scanner
	if x.readUsual(s) || s.enter('{') {
		for s.next('}') {
			x.readMember(s)
		}
	}
	s.end()
	if s.err != nil || x.begun {
		return s.err
	}
	if err := x.review.check(); err != nil {
		return err
	}
	return x.convertLate()
}

// What an API server writes is the same byte by byte in every review, but for the
// values of the request: ConversionReview of k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1,
// as createConversionReviewObjects of pkg/apiserver/conversion fills it.
const (
	usualHead     = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":`
	usualUID      = `{"uid":`
	usualDesired  = `,"desiredAPIVersion":`
	usualResponse = `,"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}`
)

// readUsual reads what an API server writes, all but the end, without a look at
// every name. It reports whether the review begins like that, and is walked into.
func (x *exchange) readUsual(s *scanner) bool {
	if !s.take(usualHead) {
		return false
	}
	x.review.found = memberKind | memberAPIVersion | memberRequest
	x.review.kind, x.review.apiVersion = usualKind, usualVersion
	x.readRequest(s)
	s.within("request")
	s.take(usualResponse)
	return true
}

var usualKind, usualVersion = []byte(reviewKind), []byte(reviewV1)

func (x *exchange) readMember(s *scanner) {
	switch name := s.name(); string(name) {
	case "kind":
		x.review.kind = x.text(memberKind, "kind")
	case "apiVersion":
		x.review.apiVersion = x.text(memberAPIVersion, "apiVersion")
	case "request":
		x.once(memberRequest, "request")
		x.readRequest(s)
		s.within("request")
	default:
		s.value()
	}
}

func (x *exchange) readRequest(s *scanner) {
	if s.err != nil || !x.enterRequest(s) {
		return
	}
	for s.next('}') {
		switch name := s.name(); string(name) {
		case "uid":
			x.review.uid = x.text(memberUID, "uid")
		case "desiredAPIVersion":
			x.review.desired = x.text(memberDesired, "desiredAPIVersion")
		case "objects":
			x.once(memberObjects, "objects")
			x.readObjects(s)
			s.within("objects")
		default:
			s.value()
		}
	}
}

// enterRequest walks into the request, behind what an API server writes first.
func (x *exchange) enterRequest(s *scanner) bool {
	if !s.take(usualUID) {
		return s.enter('{')
	}
	x.review.uid = x.text(memberUID, "uid")
	if s.take(usualDesired) {
		x.review.desired = x.text(memberDesired, "desiredAPIVersion")
	}
	return true
}

// readObjects converts the objects, or remembers where they are.
func (x *exchange) readObjects(s *scanner) {
	switch {
	case s.err != nil:
	case x.review.found&beforeObjects != beforeObjects || x.review.check() != nil:
		s.peek()
		x.review.objects = s.pos
		s.value()
		x.review.objectsEnd = s.pos
	case x.begin():
		x.convertObjects(s)
	}
}

// convertLate converts the objects that were only remembered, if any.
func (x *exchange) convertLate() error {
	if !x.begin() || x.review.objectsEnd == 0 {
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

// text reads a member that is a string.
func (x *exchange) text(member members, name string) []byte {
	x.once(member, name)
	if x.scanner.err != nil {
		return nil
	}
	text := x.scanner.text()
	x.scanner.within(name)
	return text
}

// once refuses a member that came before: which of the two counts is read
// differently from one program to the next.
func (x *exchange) once(member members, name string) {
	if x.review.found&member != 0 {
		x.scanner.fail(fmt.Errorf("the member %q comes twice, the second time before byte %d", name, x.scanner.pos))
	}
	x.review.found |= member
}

// check says whether the body is a review at all, and one that can be answered:
// in a version that this server knows, and with a uid that ties the answer to it.
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

// version returns the group and version of the review, and so of its answer.
func (r *review) version() string {
	for _, version := range [...]string{reviewV1, reviewV1beta1} {
		if string(r.apiVersion) == version {
			return version
		}
	}
	return ""
}

// target returns the version to convert to. Its group must be the one that the
// converter has rules for.
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
