// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// confines is an API server that counts the dry runs that it refuses and accepts.
type confines struct {
	client.Client
	not               bool
	refused, accepted int
}

func (c *confines) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	if c.not {
		c.accepted++
		return nil
	}
	c.refused++
	return apierrors.NewInvalid(schema.GroupKind{}, "crd", field.ErrorList{field.Invalid(nil, nil,
		"ValidatingAdmissionPolicy 'definitions.conversion-operator.io' with binding 'definitions.conversion-operator.io' denied request")})
}

// TestConfinementIsCheckedSeldom: audit logs have one refusal an hour for each manager. A manager that is not
// confined notices within an hour, and its confinement within a minute.
func TestConfinementIsCheckedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &confines{}
		check := &Confinement{Client: server, Log: logr.Discard()}
		go func() { _ = check.Start(t.Context()) }()
		time.Sleep(24*time.Hour - time.Second) //nolint:forbidigo // the clock of synctest
		expect.Equal(t, "refused in a day", 24, server.refused)
		server.not = true
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of synctest
		expect.Equal(t, "confined", false, *check.last.Load())
		server.not = false
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of synctest
		expect.Equal(t, "confined again", true, *check.last.Load())
	})
}
