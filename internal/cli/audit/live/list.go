// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
	verify "github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definitions reads the requested definitions, or all, and calls visit for each.
// Definitions are large, so it reads small pages, and the next one when visit returns.
func (a *auditor) definitions(ctx context.Context, visit func(*apiextensionsv1.CustomResourceDefinition)) error {
	if len(a.Names) == 0 {
		return a.allDefinitions(ctx, visit)
	}
	a.setTotal(len(a.Names))
	for _, name := range a.Names {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := verify.Send(ctx, a.client.Get().AbsPath(definitionsPath, name), crd)
		if apierrors.IsNotFound(err) && a.Next[name] != nil {
			continue // the user is about to create it
		}
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("the cluster has no CustomResourceDefinition %s: name it <plural>.<group>, for example crontabs.example.com", name)
		}
		if err != nil {
			return fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
		}
		visit(crd)
	}
	return nil
}

func (a *auditor) allDefinitions(ctx context.Context, visit func(*apiextensionsv1.CustomResourceDefinition)) error {
	request := func() *rest.Request {
		return a.client.Get().AbsPath(definitionsPath)
	}
	token, done := "", 0
	var size pages.Size
	for {
		list := apiextensionsv1.CustomResourceDefinitionList{}
		if err := verify.SendPage(ctx, &size, int64(a.AtOnce), request, token, &list); err != nil {
			return fmt.Errorf("list CustomResourceDefinitions: %w", err)
		}
		done += len(list.Items)
		remaining := 0
		if list.RemainingItemCount != nil {
			remaining = int(*list.RemainingItemCount)
		}
		a.setTotal(done + remaining)
		for i := range list.Items {
			crd := list.Items[i] // a copy, so that an unfinished one does not hold the page in memory
			visit(&crd)
		}
		if token = list.Continue; token == "" {
			return nil
		}
	}
}

func (a *auditor) setTotal(definitions int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total = definitions
}
