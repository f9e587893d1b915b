// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func conflict(name string) error {
	return apierrors.NewConflict(testResource.GroupResource(), name, errors.New("the object has been modified"))
}

func expiredError(token string) error {
	err := apierrors.NewResourceExpired("the provided continue parameter is too old")
	err.ErrStatus.Continue = token
	return err
}

// generic is an error without a Status, as client-go reports it.
func generic(code int, name string) error {
	return apierrors.NewGenericServerResponse(code, "PATCH", testResource.GroupResource(), name, "404 page not found", 0, true)
}

func unconvertible() error {
	return apierrors.NewInternalError(errors.New("conversion webhook for example.com/v1beta1, Kind=CronTab failed: port is missing"))
}

func unauthorized() error { return apierrors.NewUnauthorized("token expired") }

func forbidden(name string) error {
	return apierrors.NewForbidden(testResource.GroupResource(), name, errors.New("denied by policy"))
}

// withoutRight is the error of an API server for a user without the right.
func withoutRight(verb, name string) error {
	return apierrors.NewForbidden(testResource.GroupResource(), name, fmt.Errorf(
		"User %q cannot %s resource \"crontabs\" in API group \"example.com\" in the namespace \"ns\"", "system:serviceaccount:conversion-system:migration-1", verb))
}

func tooLarge() error { return apierrors.NewRequestEntityTooLargeError("limit is 3145728") }

func invalid(name string) error {
	return apierrors.NewInvalid(testKind, name, nil)
}

func unreachable() error { return errors.New("dial tcp 10.0.0.1:443: connect: connection refused") }

func unavailable() error { return apierrors.NewServiceUnavailable("etcd is starting") }

func overloaded(seconds int) error { return apierrors.NewTooManyRequests("slow down", seconds) }

func gatewayTimeout() error { return apierrors.NewTimeoutError("request did not complete", 0) }

func badGateway() error { return generic(http.StatusBadGateway, "") }
