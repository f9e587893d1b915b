// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// The kind of reviews and its version. They are constants of this
// package so that converter pods do not link the API of CustomResourceDefinitions.
const (
	reviewKind    = "ConversionReview"
	reviewVersion = "apiextensions.k8s.io/v1"
)

// review is the request of a ConversionReview, as far as it is parsed. Its byte slices share the
// memory of the body where possible, and are nil before their member is read.
type review struct {
	apiVersion, kind []byte
	// uid must be repeated in the answer.
	uid []byte
	// desired is the group and version to convert to.
	desired []byte
	// request reports whether there is a request.
	request bool
	// objects is where the list of objects begins in the body, 0 if there is none. The objects may have different versions.
	objects int
}

// read parses the body once. API servers write the members of a review in the order in which they
// are needed, so objects are converted while they are parsed. Objects that precede a needed member
// are converted at the end. read returns an error if the body is not a usable review.
func (x *exchange) read() error {
	end, err := tree.Walk(x.in, 0, x.readMember)
	if err == nil {
		err = tree.End(x.in, end)
	}
	if err != nil || x.headWritten {
		return err
	}
	if err := x.review.check(); err != nil {
		return err
	}
	if x.beginAnswer() && x.review.objects > 0 {
		_, err = x.convertObjects(x.review.objects)
	}
	return err
}

func (x *exchange) readMember(name string, pos int) (end int, err error) {
	switch name {
	case "kind":
		return x.readText(name, pos, &x.review.kind)
	case "apiVersion":
		return x.readText(name, pos, &x.review.apiVersion)
	case "request":
		if x.review.request {
			return pos, errTwice(name, pos)
		}
		x.review.request = true
		return tree.Walk(x.in, pos, x.readRequest)
	}
	return tree.Skip(x.in, pos)
}

func (x *exchange) readRequest(name string, pos int) (end int, err error) {
	switch name {
	case "uid":
		return x.readText(name, pos, &x.review.uid)
	case "desiredAPIVersion":
		return x.readText(name, pos, &x.review.desired)
	case "objects":
		return x.readObjects(name, pos)
	}
	return tree.Skip(x.in, pos)
}

// readObjects converts the objects, unless a member that is needed for it follows.
func (x *exchange) readObjects(name string, pos int) (end int, err error) {
	text := x.in[pos:]
	switch {
	case x.review.objects > 0:
		return pos, errTwice(name, pos)
	case !bytes.HasPrefix(text, []byte("[")) && !bytes.HasPrefix(text, []byte("null")):
		return pos, fmt.Errorf("%s at byte %d is not a list", name, pos)
	}
	x.review.objects = pos
	switch {
	case len(x.review.desired) == 0 || x.review.check() != nil:
		return tree.Skip(x.in, pos)
	case !x.beginAnswer():
		return pos, errStopped
	}
	return x.convertObjects(pos)
}

// maxText is the length of the longest text that is read from a request, besides objects: names have at most 253
// characters. Answers and messages repeat some texts, also several times.
const maxText = 1 << 10

// readText reads a member that is a string, or null.
func (x *exchange) readText(name string, pos int, into *[]byte) (end int, err error) {
	if *into != nil {
		return pos, errTwice(name, pos)
	}
	*into, end, err = textAt(x.in, pos)
	if err == nil && *into == nil {
		err = fmt.Errorf("%s at byte %d is not a string of at most %d bytes", name, pos, maxText)
	}
	return end, err
}

// textAt returns the string at a position, which may share memory with the data, and its end: nil for a value that is no
// string, or longer than maxText. A null is an empty string.
func textAt(data []byte, pos int) (text []byte, end int, err error) {
	end, err = tree.Skip(data, pos)
	switch {
	case err != nil || end-pos > maxText:
		return nil, end, err
	case data[pos] == 'n':
		return []byte{}, end, nil
	case data[pos] != '"':
		return nil, end, nil
	}
	inner := data[pos+1 : end-1 : end-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		inner = tree.Unquote([]byte{}, inner)
	}
	return inner, end, nil
}

// copyText copies the string at a position, empty if textAt returns none, and returns its end.
func copyText(data []byte, pos int, into *string) (end int, err error) {
	text, end, err := textAt(data, pos)
	*into = string(text)
	return end, err
}

// errTwice rejects a member that occurs twice: programs differ in which of the two they use.
func errTwice(name string, pos int) error {
	return fmt.Errorf("the member %q comes twice, the second time before byte %d", name, pos)
}

// check returns an error unless the body is a review that can be answered: in the known version, and
// with a uid.
func (r *review) check() error {
	if string(r.kind) != reviewKind {
		return fmt.Errorf("kind is %q, not %q", r.kind, reviewKind)
	}
	if string(r.apiVersion) != reviewVersion {
		return fmt.Errorf("apiVersion is %q, but reviews are answered in %s only: correct conversionReviewVersions of the CustomResourceDefinition",
			r.apiVersion, reviewVersion)
	}
	if len(r.uid) == 0 {
		return errors.New("request.uid is missing")
	}
	return nil
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
