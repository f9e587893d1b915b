// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration"
)

// Forecast says what a run would do. Its JSON form is stable.
type Forecast struct {
	Resource string `json:"resource"`
	// Problem says why the run would not start, or would be aborted.
	Problem string `json:"problem,omitempty"`
	// StorageVersion and StoredVersions are those of the CustomResourceDefinition.
	StorageVersion string   `json:"storageVersion,omitempty"`
	StoredVersions []string `json:"storedVersions,omitempty"`
	// Objects is the number of objects.
	Objects int64 `json:"objects"`
	// Attempt is the result of dry runs on a few of them.
	migration.Attempt
	// Prunes are the versions that would be removed from status.storedVersions.
	Prunes []string `json:"prunes,omitempty"`
	// Record names what will have the record of the run.
	Record string `json:"record"`
}

// WouldFail reports whether the run would not end as Complete.
func (f *Forecast) WouldFail() bool { return f.Problem != "" || len(f.Refused) > 0 }

// Forecast says what Migrate would do. It writes nothing.
func (m *Migrator) Forecast(ctx context.Context, targets []Target) []Forecast {
	forecasts := make([]Forecast, len(targets))
	for i := range targets {
		forecasts[i] = m.forecast(ctx, &targets[i])
	}
	return forecasts
}

func (m *Migrator) forecast(ctx context.Context, target *Target) Forecast {
	is := Forecast{Resource: target.Name(), StorageVersion: target.StorageVersion()}
	if target.CRD != nil {
		is.StoredVersions = target.CRD.Status.StoredVersions
		if !m.KeepStoredVersions {
			is.Prunes = slices.DeleteFunc(slices.Clone(is.StoredVersions), func(version string) bool { return version == target.Resource.Version })
		}
	}
	if err := m.readForecast(ctx, target, &is); err != nil {
		is.Problem = reasonOf(ctx, err).Error()
	}
	return is
}

func (m *Migrator) readForecast(ctx context.Context, target *Target, is *Forecast) error {
	is.Record = m.record(target).String()
	engine, err := m.engine(ctx, target, randomID(), memory{}, m.newLimits())
	if err != nil {
		return err
	}
	page, err := engine.Lister.List(ctx, migration.ListScope{}, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("cannot list the objects: %w", err)
	}
	is.Objects = int64(len(page.Items))
	if page.RemainingItemCount != nil {
		is.Objects += *page.RemainingItemCount
	}
	is.Attempt, err = engine.Try(ctx)
	return err
}
