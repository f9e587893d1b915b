// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/operator/apiservers"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// +kubebuilder:rbac:urls=/flagz,verbs=get

const (
	// flagsInterval is the time between two reads of the flags of API servers. They change only when
	// an API server restarts.
	flagsInterval = time.Hour
	// flagsTimeout bounds one read.
	flagsTimeout = 10 * time.Second
	// flagsType is the structured form of /flagz, which Kubernetes 1.36 and later serve:
	// k8s.io/apiserver, pkg/server/flagz.
	flagsType = "application/json;as=Flagz;v=v1beta1;g=config.k8s.io"
)

// RequestTimeout is the longest --request-timeout of the API servers, as far as they tell it. An API
// server keeps the previous storage of a CustomResourceDefinition for twice that time.
type RequestTimeout struct {
	config  *rest.Config
	find    findServers
	longest atomic.Int64
}

// NewRequestTimeout returns a RequestTimeout that has not been read.
func NewRequestTimeout(config *rest.Config, now func() time.Time) *RequestTimeout {
	return &RequestTimeout{config: config, find: newFindServers(config, now)}
}

// PropagationDelay returns twice the longest timeout, and observed.DefaultPropagationDelay at least.
func (t *RequestTimeout) PropagationDelay() time.Duration {
	return max(observed.DefaultPropagationDelay, 2*time.Duration(t.longest.Load()))
}

// NeedLeaderElection is false: a manager that begins to lead knows the timeout already.
func (*RequestTimeout) NeedLeaderElection() bool { return false }

// Start reads the timeout again after each interval, until the context ends.
func (t *RequestTimeout) Start(ctx context.Context) error {
	return every(ctx, flagsInterval, t.Read)
}

// Read reads the timeout. If an API server does not tell its own, the last known one stays.
func (t *RequestTimeout) Read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flagsTimeout)
	defer cancel()
	longest, err := t.read(ctx)
	log := ctrl.LoggerFrom(ctx)
	if err != nil {
		log.V(1).Info("Not every API server tells its request timeout", "cause", err.Error())
	}
	if before := t.longest.Load(); err == nil && before != int64(longest) || int64(longest) > before {
		t.longest.Store(int64(longest))
		log.Info("Read the request timeout of the API servers", "requestTimeout", longest.String(), "propagationDelay", t.PropagationDelay().String())
	}
}

func (t *RequestTimeout) read(ctx context.Context) (longest time.Duration, err error) {
	addresses, _, err := t.find(ctx)
	problems := []error{err}
	for _, address := range addresses {
		config, err := apiservers.At(t.config, address)
		if err == nil {
			var timeout time.Duration
			timeout, err = readRequestTimeout(ctx, config)
			longest = max(longest, timeout)
		}
		problems = append(problems, err)
	}
	if longest == 0 && len(addresses) <= 1 {
		// The configured address may be the only one that the manager reaches.
		return readRequestTimeout(ctx, t.config)
	}
	return longest, errors.Join(problems...)
}

func readRequestTimeout(ctx context.Context, config *rest.Config) (time.Duration, error) {
	answer, err := apiservers.Open(ctx, config, "/flagz", flagsType)
	if err != nil {
		return 0, fmt.Errorf("read /flagz of %s: %w", config.Host, err)
	}
	var flagz struct {
		Flags map[string]string `json:"flags"`
	}
	err = json.NewDecoder(answer).Decode(&flagz)
	if err = errors.Join(err, answer.Close()); err != nil {
		return 0, fmt.Errorf("read /flagz of %s: %w", config.Host, err)
	}
	timeout, err := time.ParseDuration(flagz.Flags["request-timeout"])
	if err != nil {
		return 0, fmt.Errorf("/flagz of %s: request-timeout: %w", config.Host, err)
	}
	return timeout, nil
}
